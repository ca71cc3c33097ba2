// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/rendezvous_groups.h"

namespace baton::testing {

// Returns what a member of the cluster "test" is told that renews its lease and
// does not wait for changes.
inline absl::StatusOr<rpc::MembershipChange> Renewed(
    rpc::RendezvousGroups& groups, const std::string& name,
    uint64_t incarnation, uint64_t known,
    rpc::RendezvousGroups::Clock::time_point now =
        rpc::RendezvousGroups::Clock::now()) {
  absl::StatusOr<rpc::MembershipChange> told;
  groups.Renew(
      "test", name, incarnation, known, now,
      [&told](const absl::StatusOr<rpc::MembershipChange>& change) {
        told = change;
      },
      now);
  return told;
}

}  // namespace baton::testing
