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

// A cluster out of an MPI_Comm that a program has already. Needs a tree with
// BATON_MPI=ON (docs/howto.md). Programs that have no MPI of their own need
// none of this: tools/launched.h.
namespace baton::tools {

namespace internal {

using JoinRank = std::function<absl::StatusOr<std::unique_ptr<rpc::Agent>>(
    rpc::ClusterOptions)>;
absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinComm(
    MPI_Comm comm, rpc::ClusterOptions options, const JoinRank& join);

}  // namespace internal

// Makes the processes of `comm` a cluster and this one its worker of the same
// rank, with all that dist::Join gives. Rank 0 hosts the rendezvous where it
// listens, and broadcasts the address. Collective: all processes of `comm` call
// it, each on a thread that may use MPI; later nothing of Baton does.
//
//   MPI_Init(&argc, &argv);
//   ASSIGN_OR_RETURN(const auto agent, tools::JoinMpi<Part>(MPI_COMM_WORLD));
//   ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(*agent).Await());
//
// A group of all workers has the ranks of `comm`. Of `options`, name is
// "rank0", "rank1", ... unless it is given; where they listen, the host's name
// unless all processes are on one machine or it is given; rank, world_size and
// whom to meet are filled in. Errors are those of dist::Join; Unavailable at
// the others where rank 0 cannot host.
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
