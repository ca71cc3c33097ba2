// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/place.h"

#include "absl/strings/str_cat.h"

namespace baton::rpc {

std::string Place::ToString() const {
  if (line == 0) return "";
  const std::string path = file;
  return absl::StrCat(path.substr(path.rfind('/') + 1), ":", line);
}

}  // namespace baton::rpc
