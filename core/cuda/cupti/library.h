// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cupti.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::cuda {

// What is used of CUPTI's library, which is opened when it is first needed: it
// is large, and machines without it run all the rest. Immutable.
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

  // FailedPrecondition with CUPTI's words, after "CUPTI: `what`: ".
  absl::Status StatusOf(const char* what, CUptiResult result) const;
};

// Opened once. FailedPrecondition names what is missing.
const absl::StatusOr<Cupti>& OpenCupti();

}  // namespace baton::cuda
