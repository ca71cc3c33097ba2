// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace baton::examples {

// Whether the value of this flag is its default. There must be such a flag.
bool IsDefault(const std::string& flag);

// InvalidArgument for the first of these flags whose value is not its default:
// "--data does not go with --gradients".
absl::Status CheckUnused(const std::vector<std::string>& flags,
                         const std::string& with);

}  // namespace baton::examples
