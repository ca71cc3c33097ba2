// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_options.h"

#include "absl/strings/str_cat.h"

namespace baton::rpc {

std::string Target::ToString() const {
  if (const auto* name = std::get_if<std::string>(&key_)) return *name;
  if (const auto* rank = std::get_if<Rank>(&key_)) {
    return absl::StrCat("rank ", static_cast<int>(*rank));
  }
  return std::get<WorkerInfo>(key_).name;
}

}  // namespace baton::rpc
