// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/elementwise.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void Binary(BinaryOp, const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("binary");
}
void Compare(CompareOp, bool, const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("compare");
}
void Unary(UnaryOp, const Tensor&, const Tensor&) { FailWithoutCuda("unary"); }
void Affine(const Tensor&, const Tensor&, double, double) {
  FailWithoutCuda("affine");
}
void AddScaled(const Tensor&, const Tensor&, const Tensor&, double) {
  FailWithoutCuda("add_scaled");
}
void Pow(const Tensor&, const Tensor&, double) { FailWithoutCuda("pow"); }
void Clamp(const Tensor&, const Tensor&, double, double) {
  FailWithoutCuda("clamp");
}
void Where(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("where");
}
void MaskedFill(const Tensor&, const Tensor&, const Tensor&, double) {
  FailWithoutCuda("masked_fill");
}

}  // namespace baton::cuda
