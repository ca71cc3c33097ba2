// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cupti.h>

#include "core/gpu_activity.h"

namespace baton::cuda {

// Adds a record of CUPTI's to the log, if it is a kernel, copy or fill.
void AddRecord(const CUpti_Activity& record, GpuActivityBuffer& log);

}  // namespace baton::cuda
