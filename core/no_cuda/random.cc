// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/random.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

void FillUniform(const Tensor&, double, double, const Generator::Draw&) {
  FailWithoutCuda("uniform");
}
void FillNormal(const Tensor&, double, double, const Generator::Draw&) {
  FailWithoutCuda("normal");
}
void FillBernoulli(const Tensor&, double, const Generator::Draw&) {
  FailWithoutCuda("bernoulli");
}
void Dropout(const Tensor&, const Tensor&, const Tensor&, double, double,
             const Generator::Draw&) {
  FailWithoutCuda("dropout");
}
void SetTickets(const Tensor&, uint64_t, uint64_t) {
  FailWithoutCuda("generator");
}
void TakeTicket(const Tensor&, const Tensor&) { FailWithoutCuda("generator"); }

}  // namespace baton::cuda
