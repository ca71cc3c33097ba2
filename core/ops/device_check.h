// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace baton::ops {

// Throws Error led by `op` unless `tensor` is defined and on the CPU.
inline void RequireCpu(const char* op, const Tensor& tensor) {
  Require(tensor.defined(), op, "expected a tensor, got an undefined one");
  Require(tensor.device().is_cpu(), op, "expected tensors on cpu, got one on ",
          tensor.device().ToString());
}

}  // namespace baton::ops
