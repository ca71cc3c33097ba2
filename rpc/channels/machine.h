// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace baton::rpc {

// Returns an id of this machine since its last boot.
absl::StatusOr<std::string> BootId();

// Returns 16 random bytes.
absl::StatusOr<std::string> NewKey();

}  // namespace baton::rpc
