// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

// One optimizer step of many parameters in one parallel sweep (on a GPU, in one
// launch for some hundreds of them), in place; counts a version of every tensor
// written. All tensors of a target have the value's shape and dtype, f32 or
// f64; the value must be dense. Gradients of f32 values may be bf16 or f16.
// Element-wise, so that results do not depend on the number of threads. The
// formulas, and what the options mean, are PyTorch's (torch.optim).
//
// Any target may have besides:
//   lowered  a bf16 or f16 copy of an f32 value, which gets the new value,
//            rounded, in the same pass; an element of it that is not the value
//            rounded was written by others, and is what the step begins from
//   rate     f64 [], instead of the options' lr; one tensor for all targets of
//            a device
//   count    i64 [], steps done; counts this one
//   skip     f32 [], where not 0 the step writes and counts nothing; one tensor
//            for all targets of a device
// They lie where the value does, so that the replays of a recorded step
// (core/graph.h) obey a new rate, go on counting, and skip without being told.
namespace baton::ops {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;  // does not apply to the first step
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

struct SgdTarget {
  Tensor value = {};
  Tensor grad = {};
  Tensor momentum =
      {};  // zeros before the first step; undefined without momentum
  bool first_step = false;
  Tensor lowered = {}, rate = {}, count = {}, skip = {};
};
void SgdStep(const std::vector<SgdTarget>& targets, const SgdOptions& options);

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_decay = false;  // AdamW
};

struct AdamTarget {
  Tensor value = {};
  Tensor grad = {};
  Tensor mean = {};          // of gradients; zeros before the first step
  Tensor variance = {};      // of gradients, uncentred; likewise
  Tensor max_variance = {};  // likewise; undefined without amsgrad
  int64_t step = 1;  // this one, the first is 1; not read beside a count
  Tensor lowered = {}, rate = {}, count = {}, skip = {};
};
void AdamStep(const std::vector<AdamTarget>& targets,
              const AdamOptions& options);

}  // namespace baton::ops
