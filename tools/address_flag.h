// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"

namespace baton::tools {

// Returns InvalidArgument, which names the flag, or the environment variable
// that replaces an empty flag, unless the address is "host:port", "unix:path",
// "etcd://host:port,..." or empty.
absl::Status CheckAddressFlag(const absl::Flag<std::string>& flag,
                              const char* variable = nullptr);

}  // namespace baton::tools
