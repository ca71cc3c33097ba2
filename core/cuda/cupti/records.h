// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cupti.h>

#include "core/gpu_activity.h"

namespace baton::cuda {

// A record of CUPTI's, if it is a kernel, copy or fill.
void AddRecord(const CUpti_Activity& record, GpuActivityBuffer& log);

}  // namespace baton::cuda
