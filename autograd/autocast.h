// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <vector>

#include "autograd/variable.h"
#include "core/dtype.h"

namespace baton {

// While one lives, ops on Variables of this thread choose what they compute in,
// as PyTorch's autocast does, so that a model with parameters in f32 trains in
// mixed precision:
//
//   const Variable loss = [&] {
//     const AutocastScope autocast(DType::kBF16);
//     return nn::CrossEntropy(model.Forward(images), labels);
//   }();
//   loss.Backward();
//
// Products (linear, matmul, convolutions, attention, recurrent layers) compute
// in the scope's dtype. Softmax, layer and group norms, losses, sums and means,
// exp, log and pow compute in f32, as their results are. Ops of several values,
// such as + and Cat, take f32 where one of them is f32. All others compute in
// what they are given: batch norm takes its statistics in f32 anyhow. f64 is
// left alone. Casts are part of the graph: gradients of f32 parameters are f32,
// whether the backward runs within the scope or behind it.
//
// A parameter that several ops use is cast once: the outermost scope of a
// thread keeps casts of leaves that require grad, until a leaf is written (but
// none while a core/graph.h recording is made, whose replays cast anew). Scopes
// nest, the innermost counts. They are the thread's own: what a worker's
// handler, a stage or another thread computes has the dtypes of scopes that it
// opens. f16's small gradients vanish without optim::GradScaler.
// Thread-compatible; ends on the thread that made it, inner ones first.
class AutocastScope {
 public:
  // Throws Error unless it is bf16 or f16.
  explicit AutocastScope(DType dtype);
  // Within this one nothing is cast.
  static AutocastScope Off() { return AutocastScope(std::nullopt); }
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  // That of the thread's innermost scope; none outside, and where it is off.
  static std::optional<DType> Current();

 private:
  explicit AutocastScope(std::optional<DType> dtype);

  const std::optional<DType> former_;
};

}  // namespace baton

// How functions/*.cc follow the scope; without one each gives back what it
// gets.
namespace baton::autograd {

// In the scope's dtype, unless it is f64 or no floating number.
Variable Lowered(const Variable& x);
std::vector<Variable> Lowered(std::vector<Variable> values);
// f32 in the place of f16 and bf16.
Variable InF32(const Variable& x);
// f32 in the place of f16 and bf16 where `other` is f32.
Variable AsWide(const Variable& x, const Variable& other);
std::vector<Variable> AsWide(std::vector<Variable> values);

}  // namespace baton::autograd
