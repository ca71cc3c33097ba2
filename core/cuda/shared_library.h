// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::cuda {

// A library that is opened when it is first needed, and is never closed.
// Immutable.
class SharedLibrary {
 public:
  // Opens the library by its `soname` or, for machines that do not list it, at
  // `path`, where the toolkit of this build has it. FailedPrecondition says
  // that `what` is missing.
  static absl::StatusOr<SharedLibrary> Open(const char* what,
                                            const char* soname,
                                            const char* path);
  // Returns FailedPrecondition if the library has no such function.
  template <typename Function>
  absl::Status Find(const char* name, Function& function) const {
    void* found = nullptr;
    const absl::Status status = FindSymbol(name, found);
    function = reinterpret_cast<Function>(found);
    return status;
  }

 private:
  SharedLibrary(void* handle, std::string soname)
      : handle_(handle), soname_(std::move(soname)) {}
  absl::Status FindSymbol(const char* name, void*& found) const;

  void* handle_;
  std::string soname_;
};

}  // namespace baton::cuda
