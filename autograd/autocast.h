// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <vector>

#include "autograd/variable.h"
#include "core/dtype.h"

namespace baton {

// In this scope, ops on Variables of this thread choose the dtype that they
// compute in, as in PyTorch's autocast, so that a model with parameters in f32
// trains in mixed precision:
//
//   const Variable loss = [&] {
//     const AutocastScope autocast(DType::kBF16);
//     return nn::CrossEntropy(model.Forward(images), labels);
//   }();
//   loss.Backward();
//
// Products (linear, matmul, convolutions, attention, recurrent layers) compute
// in the scope's dtype. Softmax, layer and group norms, losses, sums and means,
// exp, log and pow compute in f32 and return f32. Ops of several values, such
// as + and Cat, compute in f32 if one of the values is f32. All others compute
// in the dtype of their inputs; batch norm always computes statistics in f32.
// f64 is unaffected. Casts are part of the graph: gradients of f32 parameters
// are f32, whether the backward runs inside or outside of the scope.
//
// A parameter that several ops use is cast once: the outermost scope of a
// thread caches casts of leaves that require grad, until a leaf is written (but
// not during a core/graph.h recording, whose replays cast again). Scopes nest;
// the innermost one counts. A scope applies only to its thread: a worker's
// handler, a stage or another thread needs scopes of its own. With f16, small
// gradients vanish without optim::GradScaler. Thread-compatible; destroy it on
// the thread that made it, inner scopes first.
class AutocastScope {
 public:
  // Throws Error unless `dtype` is bf16 or f16.
  explicit AutocastScope(DType dtype);
  // Within this scope nothing is cast.
  static AutocastScope Off() { return AutocastScope(std::nullopt); }
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

  // The dtype of the thread's innermost scope; nullopt if there is none or it
  // is off.
  static std::optional<DType> Current();

 private:
  explicit AutocastScope(std::optional<DType> dtype);

  const std::optional<DType> former_;
};

}  // namespace baton

// functions/*.cc call these to follow the scope. Without a scope each returns
// its argument.
namespace baton::autograd {

// Casts to the scope's dtype, unless x is f64 or not floating.
Variable Lowered(const Variable& x);
std::vector<Variable> Lowered(std::vector<Variable> values);
// Casts f16 and bf16 to f32.
Variable InF32(const Variable& x);
// Casts f16 and bf16 to f32 if `other` is f32.
Variable AsWide(const Variable& x, const Variable& other);
std::vector<Variable> AsWide(std::vector<Variable> values);

}  // namespace baton::autograd
