// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Of two kernels with one contract, the one for the device that `x` lives on.
template <typename Kernel>
Kernel* KernelFor(const Tensor& x, Kernel* cpu, Kernel* cuda) {
  return x.device().is_cuda() ? cuda : cpu;
}

}  // namespace baton::ops
