// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace baton::cuda {

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const char* what,
                                                  const char* soname,
                                                  const char* path) {
  for (const char* name : {soname, path}) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(handle, soname);
  }
  const char* why = dlerror();
  return absl::FailedPreconditionError(
      absl::StrCat("no ", what, ": ", why == nullptr ? "" : why));
}

absl::Status SharedLibrary::FindSymbol(const char* name, void*& found) const {
  found = dlsym(handle_, name);
  if (found != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(soname_, " has no ", name));
}

}  // namespace baton::cuda
