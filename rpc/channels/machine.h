// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace baton::rpc {

// What tells this machine, since it was started, from others.
absl::StatusOr<std::string> BootId();

// 16 random bytes.
absl::StatusOr<std::string> NewKey();

}  // namespace baton::rpc
