// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"

namespace baton::ops {

// Returns the kernel for the device of `x`; both kernels have one contract.
template <typename Kernel>
Kernel* KernelFor(const Tensor& x, Kernel* cpu, Kernel* cuda) {
  return x.device().is_cuda() ? cuda : cpu;
}

}  // namespace baton::ops
