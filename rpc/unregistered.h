// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "rpc/shown_name.h"

namespace baton::dist {

// Returns the result of `made`. If the error is that something is not
// registered at a worker, adds the line of code that the program lacks.
template <typename T>
Future<T> WithMissingLine(const Future<T>& made, const std::string& line) {
  const Promise<T> promise(made.executor());
  made.OnReady([promise, line](const absl::StatusOr<T>& result) {
    const bool unknown =
        absl::IsUnimplemented(result.status()) &&
        absl::StrContains(result.status().message(), "not registered");
    if (!unknown) {
      promise.Set(result);
      return;
    }
    promise.Set(absl::UnimplementedError(absl::StrCat(
        result.status().message(), ": join by ", rpc::ShownName(line),
        " before rpc::JoinCluster, in every process")));
  });
  return promise.future();
}

}  // namespace baton::dist
