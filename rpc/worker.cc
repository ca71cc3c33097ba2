// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/worker.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace baton::rpc {

absl::Status CheckWorkerName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("empty worker name");
  if (name.size() > 127) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker name of ", name.size(),
                     " characters; at most 127 are allowed: ",
                     absl::CHexEscape(name.substr(0, 40)), "..."));
  }
  for (char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) continue;
    if (c == '-' || c == '_' || c == ':' || c == '.') continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker name \"", absl::CHexEscape(name),
        "\" has a character other than letters, digits, '-', '_', ':', '.'"));
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
