// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"

namespace baton::rpc {

// How a worker refuses a method that its Registry does not have.
inline constexpr char kNotRegistered[] = "not registered on this worker";

// Returns `answer`, which a worker gave to a call of `method` ("Stage::Make",
// "LoadWeights"). If it refuses the method in the words above, adds the line of
// code that the program lacks.
absl::Status WithLineFor(const absl::Status& answer, const std::string& method);

// Returns `error`. If it says that the method that was called is not
// registered, names `what` instead, as the program calls it, and `line`, which
// it lacks.
absl::Status NameMissing(const absl::Status& error, const std::string& what,
                         const std::string& line);

// Returns the result of `made`, with its error as NameMissing returns it.
template <typename T>
Future<T> OrNameMissing(const Future<T>& made, const std::string& what,
                        const std::string& line) {
  const Promise<T> promise(made.executor());
  made.OnReady([promise, what, line](const absl::StatusOr<T>& result) {
    if (result.ok()) {
      promise.Set(result);
    } else {
      promise.Set(NameMissing(result.status(), what, line));
    }
  });
  return promise.future();
}

}  // namespace baton::rpc
