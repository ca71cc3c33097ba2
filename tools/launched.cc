// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launched.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/transports/address.h"
#include "tools/compute.h"

namespace baton::tools {
namespace {

// The variables in which a launcher sets the rank, the number of ranks, and the
// rank on this machine.
struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* other_local_rank;  // used if that one is not set; may be null
};

// The order matters: srun sets its variables beside those of the MPI that it
// starts, while mpirun passes on those of a surrounding Slurm script, which are
// the same at all ranks.
constexpr Names kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", nullptr},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_LOCALID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr}};

absl::StatusOr<std::optional<int>> LocalRankOf(const Names& names) {
  for (const char* name : {names.local_rank, names.other_local_rank}) {
    const char* text = name == nullptr ? nullptr : std::getenv(name);
    if (text == nullptr) continue;
    int rank = -1;
    if (!absl::SimpleAtoi(text, &rank) || rank < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(name, "=", text, " is no rank on a machine"));
    return rank;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<Launched>> LaunchedByOthers() {
  for (const Names& names : kLaunchers) {
    const char* rank = std::getenv(names.rank);
    const char* size = std::getenv(names.size);
    if (rank == nullptr || size == nullptr) continue;
    Launched launched{.rank = -1, .size = 0, .by = names.rank};
    if (!absl::SimpleAtoi(rank, &launched.rank) ||
        !absl::SimpleAtoi(size, &launched.size) || launched.rank < 0 ||
        launched.rank >= launched.size) {
      return absl::InvalidArgumentError(
          absl::StrCat(names.rank, "=", rank, " and ", names.size, "=", size,
                       " are not a rank and a number of ranks"));
    }
    ASSIGN_OR_RETURN(launched.local_rank, LocalRankOf(names));
    return launched;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> DeviceOf(const Launched& launched,
                                     const std::string& list, int gpus) {
  if (!launched.local_rank.has_value()) return list;
  ASSIGN_OR_RETURN(const std::vector<std::string> dealt,
                   DealDevices(list, *launched.local_rank + 1, gpus));
  return dealt.back();
}

absl::StatusOr<std::string> ListenAddressBeside(const std::string& rendezvous) {
  if (rpc::IsLocal(rendezvous)) return "127.0.0.1:0";
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, HOST_NAME_MAX) != 0)
    return absl::InternalError("gethostname failed: give --listen=host:0");
  return absl::StrCat(name, ":0");
}

}  // namespace baton::tools
