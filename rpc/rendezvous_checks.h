// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/rendezvous.h"

// The errors with which a rendezvous refuses workers.
namespace baton::rpc::internal {

// Returns InvalidArgument for options that are invalid by themselves.
absl::Status CheckJoin(const JoinOptions& options);
// Returns ResourceExhausted where a rendezvous that admits `max_members` (0:
// any number) waits in vain for so many workers.
absl::Status CheckWorldSize(const JoinOptions& options, int max_members);
absl::Status NoRoom(const JoinOptions& options, int max_members);
absl::Status TwoOfOneName(const std::string& name);
absl::Status TooLateOrTwice(const JoinOptions& options, size_t members);
// The error text for a worker that timed out when `workers`, including itself,
// had come.
std::string WhoIsMissing(const JoinOptions& options,
                         const std::vector<JoinOptions>& workers);

}  // namespace baton::rpc::internal
