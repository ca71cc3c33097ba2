// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_options.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "rpc/shown_name.h"
#include "rpc/unregistered.h"

namespace baton::rpc {
namespace {
constexpr char kUrl[] = "baton.rpc.CallError";
}  // namespace

std::optional<CallError> CallErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(*payload), '\n');
  if (parts.size() != 3) return std::nullopt;
  return CallError{parts[0], parts[1], parts[2] == "retryable"};
}

absl::Status CallFailed(const absl::Status& status, const CallError& error) {
  const std::string method = ShownName(error.method);
  absl::Status failed = Annotate(WithLineFor(status, method),
                                 absl::StrCat(error.worker, ", ", method));
  if (!failed.GetPayload(kUrl).has_value()) {
    failed.SetPayload(kUrl, absl::Cord(absl::StrCat(
                                error.worker, "\n", method, "\n",
                                error.retryable ? "retryable" : "final")));
  }
  return failed;
}

std::string Place::ToString() const {
  if (line == 0) return "";
  const std::string path = file;
  return absl::StrCat(path.substr(path.rfind('/') + 1), ":", line);
}

std::string Target::ToString() const {
  if (const auto* name = std::get_if<std::string>(&key_)) return *name;
  if (const auto* rank = std::get_if<Rank>(&key_)) {
    return absl::StrCat("rank ", static_cast<int>(*rank));
  }
  return std::get<WorkerInfo>(key_).name;
}

}  // namespace baton::rpc
