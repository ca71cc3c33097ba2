// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/indexing.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void Gather(const Tensor&, const Tensor&, int, const Tensor&) {
  FailWithoutCuda("gather");
}
void Scatter(ScatterMode, const Tensor&, int, const Tensor&, const Tensor&) {
  FailWithoutCuda("scatter");
}
void TakeRows(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("embedding");
}
void PutRows(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("put_rows");
}
void AddToRows(const Tensor&, const Tensor&, const Tensor&) {
  FailWithoutCuda("embedding_backward");
}
int64_t RowSlots(const Tensor&, const Tensor&, const Tensor&, int64_t) {
  FailWithoutCuda("coalesce");
}
void OneHot(const Tensor&, const Tensor&) { FailWithoutCuda("one_hot"); }

}  // namespace baton::cuda
