// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.h"
#include "core/ops/optimizer_rules.h"

namespace baton::cpu {

// A parameter of f32 or f64, all of whose arrays lie densely in one order. The
// gradient is of its dtype or, for f32, bf16 or f16.
struct StepArrays {
  DType dtype;
  void* value;
  DType grad_dtype;
  const void* grad;
  std::array<void*, ops::kMaxStateSlots> state = {};  // of its dtype; or null
  // See ops::StepTarget; bf16 or f16.
  DType lowered_dtype = DType::kBF16;
  void* lowered = nullptr;
};

struct StepArguments {
  double rate;
  int64_t step;
  double limit, scale;  // of gradients
};

// Steps elements begin .. end by those of the gradient from `grad_begin` on.
void StepRange(const ops::StepRule& rule, const StepArrays& arrays,
               const StepArguments& arguments, int64_t begin, int64_t end,
               int64_t grad_begin);

}  // namespace baton::cpu
