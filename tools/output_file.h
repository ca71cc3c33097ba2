// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Files that a program writes when its work is done. The checks find a path
// that cannot be written before the work. "-" is standard output.
namespace baton::tools {

// Both return Unavailable, which names the file and says why it cannot be
// written. A write replaces an existing file only when the new text is
// complete; a check does not change it.
absl::Status CheckOutput(const std::string& path);
absl::Status WriteOutput(const std::string& path, const std::string& text);
// The same for a folder, which is made if it does not exist.
absl::Status CheckOutputFolder(const std::string& path);

namespace internal {
absl::Status WrongOutput(absl::string_view flag, const absl::Status& status);
}  // namespace internal

// Returns InvalidArgument, which names the first flag whose file cannot be
// written and says why. An empty flag asks for no file.
template <typename... Strings>
absl::Status CheckOutputs(const absl::Flag<Strings>&... flags) {
  absl::Status wrong;
  (wrong.Update(
       internal::WrongOutput(absl::GetFlagReflectionHandle(flags).Name(),
                             CheckOutput(absl::GetFlag(flags)))),
   ...);
  return wrong;
}
// The same for a folder.
absl::Status CheckOutputFolder(const absl::Flag<std::string>& flag);

}  // namespace baton::tools
