// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cupti.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::cuda {

// The functions of CUPTI's library that are used. It is opened when it is first
// needed, because it is large; machines without it run everything else.
// Immutable.
struct Cupti {
  decltype(&cuptiGetVersion) get_version;
  decltype(&cuptiGetTimestamp) get_timestamp;
  decltype(&cuptiGetResultString) get_result_string;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) get_next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) get_dropped;

  // Returns FailedPrecondition with CUPTI's words, after "CUPTI: `what`: ".
  absl::Status StatusOf(const char* what, CUptiResult result) const;
};

// Opens the library at the first call. FailedPrecondition says what is missing.
const absl::StatusOr<Cupti>& OpenCupti();

}  // namespace baton::cuda
