// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launched.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rpc/transports/address.h"

namespace baton::tools {
namespace {

// The names that a launcher gives to a rank and the number of ranks.
struct Names {
  const char* rank;
  const char* size;
};
// srun sets its own beside those of the MPI that it starts.
constexpr Names kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"}};

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
                       " are no rank among others"));
    }
    return launched;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ListenAddressBeside(const std::string& rendezvous) {
  if (rpc::IsLocal(rendezvous)) return "127.0.0.1:0";
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, HOST_NAME_MAX) != 0)
    return absl::InternalError("gethostname failed: give --listen=host:0");
  return absl::StrCat(name, ":0");
}

}  // namespace baton::tools
