// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/descriptors.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {
namespace {

constexpr size_t kMostReserve = 128;

size_t DescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

bool Raise() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == limit.rlim_max) return true;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
  LogWarning("cannot raise the limit of descriptors to ", limit.rlim_max, ": ",
             std::strerror(errno));
  return false;
}

}  // namespace

void RaiseDescriptorLimit() {
  [[maybe_unused]] static const bool raised = Raise();
}

absl::Status CheckDescriptors(int lowest, size_t reserves) {
  const size_t limit = DescriptorLimit();
  const size_t reserve = std::min(kMostReserve, limit / 8);
  const size_t used = lowest < 0 ? limit : static_cast<size_t>(lowest);
  if (used + reserves * reserve < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(used, " of ", limit,
                   " descriptors are in use, and the others are kept for what "
                   "is connected; raise the hard limit (ulimit -Hn)"));
}

absl::Status CheckDescriptors(size_t reserves) {
  const Fd lowest(eventfd(0, EFD_CLOEXEC));
  return CheckDescriptors(lowest.get(), reserves);
}

}  // namespace baton::rpc
