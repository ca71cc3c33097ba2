// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

// The rank that mpirun, mpiexec or srun gives to each process that it starts,
// in environment variables; MPI's library is not needed to read them.
namespace baton::tools {

struct Launched {
  int rank = 0;
  int size = 0;
  std::string by;  // "OMPI_COMM_WORLD_RANK", for errors
  // The rank among the processes on this machine, if the launcher sets it.
  std::optional<int> local_rank = {};
};

// Reads the variables of Open MPI, MPICH and its relatives, or Slurm, whichever
// are set first; nullopt if this process was started otherwise. InvalidArgument
// if they contain no valid rank.
absl::StatusOr<std::optional<Launched>> LaunchedByOthers();

// Returns the device of a launched process with --device=`list`: DealDevices
// (tools/compute.h) deals the devices by local rank, so that the processes on a
// machine have different GPUs as long as `gpus` suffice. Without a local rank,
// returns `list`.
absl::StatusOr<std::string> DeviceOf(const Launched& launched,
                                     const std::string& list, int gpus);

// Returns the address at which a process must listen so that all processes that
// meet at `rendezvous` reach it: this machine's host name, or 127.0.0.1 if the
// rendezvous is local to this machine; with any free port.
absl::StatusOr<std::string> ListenAddressBeside(const std::string& rendezvous);

}  // namespace baton::tools
