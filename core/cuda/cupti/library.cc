// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cupti/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// Where the toolkit of this build has it, for machines that do not list it.
void* OpenLibrary() {
  for (const char* name : {BATON_CUPTI_SONAME, BATON_CUPTI_LIBRARY}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(BATON_CUPTI_SONAME, " has no ", name));
}

// Records only ever grow, so a younger library writes what this one reads.
absl::Status CheckVersion(const Cupti& cupti) {
  uint32_t version = 0;
  RETURN_IF_ERROR(cupti.StatusOf("version", cupti.get_version(&version)));
  constexpr uint32_t kMajor = 10'000, kMinor = 100;
  if (version / kMajor == CUPTI_API_VERSION / kMajor &&
      version / kMinor >= CUPTI_API_VERSION / kMinor)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(BATON_CUPTI_SONAME, " is of version ", version,
                   ", and this was built with ", CUPTI_API_VERSION));
}

absl::StatusOr<Cupti> Open() {
  void* library = OpenLibrary();
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat("no CUPTI: ", why == nullptr ? "" : why));
  }
  Cupti cupti{};
  RETURN_IF_ERROR(Find(library, "cuptiGetVersion", cupti.get_version));
  RETURN_IF_ERROR(Find(library, "cuptiGetTimestamp", cupti.get_timestamp));
  RETURN_IF_ERROR(
      Find(library, "cuptiGetResultString", cupti.get_result_string));
  RETURN_IF_ERROR(Find(library, "cuptiActivityRegisterCallbacks",
                       cupti.register_callbacks));
  RETURN_IF_ERROR(Find(library, "cuptiActivityEnable", cupti.enable));
  RETURN_IF_ERROR(Find(library, "cuptiActivityDisable", cupti.disable));
  RETURN_IF_ERROR(Find(library, "cuptiActivityFlushAll", cupti.flush_all));
  RETURN_IF_ERROR(
      Find(library, "cuptiActivityGetNextRecord", cupti.get_next_record));
  RETURN_IF_ERROR(
      Find(library, "cuptiActivityGetNumDroppedRecords", cupti.get_dropped));
  RETURN_IF_ERROR(CheckVersion(cupti));
  return cupti;
}

}  // namespace

absl::Status Cupti::StatusOf(const char* what, CUptiResult result) const {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  if (get_result_string(result, &text) != CUPTI_SUCCESS || text == nullptr)
    text = "an error that it does not name";
  return absl::FailedPreconditionError(
      absl::StrCat("CUPTI: ", what, ": ", text));
}

const absl::StatusOr<Cupti>& OpenCupti() {
  static const auto* const cupti = new absl::StatusOr<Cupti>(Open());
  return *cupti;
}

}  // namespace baton::cuda
