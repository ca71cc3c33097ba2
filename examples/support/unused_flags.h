// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace baton::examples {

// Returns true if this flag, which must exist, has its default value.
bool IsDefault(const std::string& flag);

// Returns InvalidArgument for the first of these flags that does not have its
// default value: "--data does not go with --gradients".
absl::Status CheckUnused(const std::vector<std::string>& flags,
                         const std::string& with);

}  // namespace baton::examples
