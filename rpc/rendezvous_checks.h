// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/rendezvous.h"

// What a rendezvous says to those whom it does not let in.
namespace baton::rpc::internal {

// InvalidArgument names what makes no sense in itself.
absl::Status CheckJoin(const JoinOptions& options);
absl::Status TwoOfOneName(const std::string& name);
absl::Status TooLateOrTwice(const JoinOptions& options, size_t members);
// For one whose time is up while `workers`, itself among them, are there.
std::string WhoIsMissing(const JoinOptions& options,
                         const std::vector<JoinOptions>& workers);

}  // namespace baton::rpc::internal
