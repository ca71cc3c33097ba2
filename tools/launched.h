// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

// What mpirun, mpiexec and srun tell each process that they start, in its
// environment: a program needs no library of MPI to read it.
namespace baton::tools {

struct Launched {
  int rank = 0;
  int size = 0;
  std::string by;  // "OMPI_COMM_WORLD_RANK", for errors
  // The rank among the processes of this machine, where the launcher tells it.
  std::optional<int> local_rank = {};
};

// Of Open MPI, MPICH and what is like it, or Slurm, the first that is there;
// none where this process was started otherwise. InvalidArgument for variables
// that are no rank among others.
absl::StatusOr<std::optional<Launched>> LaunchedByOthers();

// The device of a launched process that was given --device=`list`: its share by
// local rank as DealDevices (tools/compute.h) deals them, so that processes of
// one machine have different GPUs of `gpus` while there are enough. `list`
// itself without a local rank.
absl::StatusOr<std::string> DeviceOf(const Launched& launched,
                                     const std::string& list, int gpus);

// Where a process listens that all are to reach who meet at `rendezvous`: at
// this machine's host name, or at 127.0.0.1 if they are all on this machine;
// at any free port.
absl::StatusOr<std::string> ListenAddressBeside(const std::string& rendezvous);

}  // namespace baton::tools
