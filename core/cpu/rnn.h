// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/rnn.h"
#include "core/tensor.h"

// Recurrent layers on the CPU, in f32 and f64, on the calling thread's compute
// threads. The caller has checked the arguments; all tensors are on one device,
// states are defined, results are not empty.
namespace baton::cpu {

ops::RnnResult RnnForward(const ops::RnnInputs& in,
                          const ops::RnnOptions& options, bool keep);
ops::RnnGradients RnnBackward(const ops::RnnInputs& in,
                              const ops::RnnResult& result, const Tensor& dy,
                              const Tensor& dh, const Tensor& dc,
                              const ops::RnnOptions& options);

}  // namespace baton::cpu
