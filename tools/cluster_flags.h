// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/cluster.h"

// The command-line flags of every program that joins a cluster:
//   --cluster --name --rank --rendezvous --world_size --extra --peers --listen
//   --advertise_host --tensor_port --join_timeout --rpc_timeout --lease
//   --rpc_threads --max_message_bytes --max_undelivered_bytes
//   --max_calls_per_peer --max_call_bytes_per_peer --max_calls
// and those of tools/compute_flags.h and tools/security_flags.h.
// The defaults are BATON_CLUSTER, BATON_NAME, BATON_RANK, BATON_RENDEZVOUS,
// BATON_WORLD_SIZE, BATON_PEERS and BATON_LISTEN, which baton-run sets for the
// workers and the trainer that it starts. If mpirun, mpiexec or srun has
// started the process (tools/launched.h), and name, world size and peers are
// not given, rank 0 is the trainer and hosts the rendezvous, the others are
// worker1, worker2, ..., and --device=cuda is the GPU of the process's local
// rank.
namespace baton::tools {

// Reads the parsed flags. InvalidArgument names the flag that is wrong.
absl::StatusOr<rpc::ClusterOptions> ClusterOptionsFromFlags(
    const std::string& default_name);

}  // namespace baton::tools
