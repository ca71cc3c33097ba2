// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A cluster out of all processes that mpirun has started, with an installed
// Baton.

#include <mpi.h>

#include <cstdio>

#include "baton/core/status.h"
#include "baton/rpc/collectives/process_group.h"
#include "baton/tools/mpi/join_mpi.h"

namespace {

absl::Status Run() {
  // [cluster]
  BATON_ASSIGN_OR_RETURN(const auto agent,
                         baton::tools::JoinMpi<>(MPI_COMM_WORLD));
  BATON_ASSIGN_OR_RETURN(const auto group,
                         baton::rpc::ProcessGroup::Make(*agent).Await());
  // [end]
  if (group->rank() == 0)
    std::printf("with MPI: %d processes\n", group->size());
  BATON_RETURN_IF_ERROR(group->Barrier().Await());
  return agent->Shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const absl::Status status = Run();
  MPI_Finalize();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
