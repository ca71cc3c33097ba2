// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "models/distributed/join.h"
#include "rpc/agent.h"
#include "rpc/cluster.h"
#include "rpc/registry.h"

// Makes a cluster out of a program's MPI_Comm. Needs a tree with BATON_MPI=ON
// (docs/howto.md). A program that does not use MPI itself does not need this:
// see tools/launched.h.
namespace baton::tools {

namespace internal {

using JoinRank = std::function<absl::StatusOr<std::unique_ptr<rpc::Agent>>(
    rpc::ClusterOptions)>;
absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinComm(
    MPI_Comm comm, rpc::ClusterOptions options, const JoinRank& join);

}  // namespace internal

// Makes the processes of `comm` a cluster, in which this process is the worker
// of the same rank, and registers what dist::Join does. Rank 0 hosts the
// rendezvous and broadcasts its address. Collective: all processes of `comm`
// must call it, each on a thread that may use MPI. Baton does not use MPI
// afterwards.
//
//   MPI_Init(&argc, &argv);
//   ASSIGN_OR_RETURN(const auto agent, tools::JoinMpi<Part>(MPI_COMM_WORLD));
//   ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(*agent).Await());
//
// A group of all workers has the ranks of `comm`. Names that `options` does not
// give are "rank0", "rank1", ...; the address to listen at is the host's name,
// unless all processes are on one machine or `options` gives it. Rank,
// world_size and the rendezvous are filled in. Errors are those of dist::Join;
// the other ranks return Unavailable if rank 0 cannot host.
template <typename... Parts>
absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinMpi(
    MPI_Comm comm, rpc::ClusterOptions options = {},
    rpc::Registry registry = {}) {
  return internal::JoinComm(
      comm, std::move(options), [&registry](rpc::ClusterOptions filled) {
        return dist::Join<Parts...>(std::move(filled), std::move(registry));
      });
}

}  // namespace baton::tools
