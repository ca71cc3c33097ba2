// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "core/ops/optimizer_rules.h"

namespace baton::cpu {

// The arrays of one f32 or f64 parameter, all dense in one order. The gradient
// has the parameter's dtype; that of an f32 parameter may be bf16 or f16.
struct StepArrays {
  DType dtype;
  void* value;
  DType grad_dtype;
  const void* grad;
  std::array<void*, ops::kMaxStateSlots> state = {};  // of `dtype`; or null
  // See ops::StepTarget; the dtype is bf16 or f16.
  DType lowered_dtype = DType::kBF16;
  void* lowered = nullptr;
};

struct StepArguments {
  double rate;
  int64_t step;
  double limit, scale;  // of the gradients
};

// Steps elements begin .. end of each parameter. Their gradients begin at
// grad[grad_begin]. All parameters have the same dtypes, and the same of their
// arrays are null. One call for many short parameters is faster than many.
void StepRange(const ops::StepRule& rule,
               std::span<const StepArrays> parameters,
               const StepArguments& arguments, int64_t begin, int64_t end,
               int64_t grad_begin);

}  // namespace baton::cpu
