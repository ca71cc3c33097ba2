// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/lease.h"

#include "absl/strings/str_cat.h"

namespace baton::rpc {

absl::Status CheckLease(std::chrono::milliseconds lease) {
  if (lease < kLeastLease) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a lease (--lease) of ", lease.count(), " ms is too short: workers ",
        "that are well would be given up; at least ", kLeastLease.count(),
        " ms are needed"));
  }
  if (lease > kMostLease) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the lease (--lease) is too long: at most ",
        kMostLease / std::chrono::hours(1), " hours are possible"));
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
