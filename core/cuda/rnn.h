// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/ops/rnn.h"
#include "core/tensor.h"

// Recurrent layers through cuDNN, in f32 (rounded to TF32 if core/precision.h
// allows it), f64, f16 and bf16. The caller has checked the arguments; all
// tensors are on one device, states are defined, results are not empty.
namespace baton::cuda {

ops::RnnResult RnnForward(const ops::RnnInputs& in,
                          const ops::RnnOptions& options, bool keep);
ops::RnnGradients RnnBackward(const ops::RnnInputs& in,
                              const ops::RnnResult& result, const Tensor& dy,
                              const Tensor& dh, const Tensor& dc,
                              const ops::RnnOptions& options);

}  // namespace baton::cuda
