// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"

namespace baton::tools {

// InvalidArgument names the flag whose address is none of "host:port",
// "unix:path" and "etcd://host:port,...", or the variable of the environment
// that stands for it where it is empty. No address at all is OK.
absl::Status CheckAddressFlag(const absl::Flag<std::string>& flag,
                              const char* variable = nullptr);

}  // namespace baton::tools
