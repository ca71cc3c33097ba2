// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/unused_flags.h"

#include "absl/flags/reflection.h"
#include "tools/command_line.h"

namespace baton::examples {

bool IsDefault(const std::string& flag) {
  const absl::CommandLineFlag& found = *absl::FindCommandLineFlag(flag);
  return found.CurrentValue() == found.DefaultValue();
}

absl::Status CheckUnused(const std::vector<std::string>& flags,
                         const std::string& with) {
  for (const std::string& name : flags) {
    if (!IsDefault(name))
      return tools::WrongFlag(name, "does not go with --" + with);
  }
  return absl::OkStatus();
}

}  // namespace baton::examples
