// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cupti/library.h"

#include "absl/strings/str_cat.h"
#include "core/cuda/shared_library.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// Records only ever grow, so a newer library writes everything that this code
// reads.
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
  ASSIGN_OR_RETURN(
      const SharedLibrary library,
      SharedLibrary::Open("CUPTI", BATON_CUPTI_SONAME, BATON_CUPTI_LIBRARY));
  Cupti cupti{};
  RETURN_IF_ERROR(library.Find("cuptiGetVersion", cupti.get_version));
  RETURN_IF_ERROR(library.Find("cuptiGetTimestamp", cupti.get_timestamp));
  RETURN_IF_ERROR(
      library.Find("cuptiGetResultString", cupti.get_result_string));
  RETURN_IF_ERROR(
      library.Find("cuptiActivityRegisterCallbacks", cupti.register_callbacks));
  RETURN_IF_ERROR(library.Find("cuptiActivityEnable", cupti.enable));
  RETURN_IF_ERROR(library.Find("cuptiActivityDisable", cupti.disable));
  RETURN_IF_ERROR(library.Find("cuptiActivityFlushAll", cupti.flush_all));
  RETURN_IF_ERROR(
      library.Find("cuptiActivityGetNextRecord", cupti.get_next_record));
  RETURN_IF_ERROR(
      library.Find("cuptiActivityGetNumDroppedRecords", cupti.get_dropped));
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
