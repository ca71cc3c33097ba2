// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

ops::BatchNormResult BatchNormTrain(const Tensor&, const Tensor&, const Tensor&,
                                    const Tensor&, const Tensor&, const Tensor&,
                                    const ops::BatchNormOptions&,
                                    const Tensor&) {
  FailWithoutCuda("batch_norm");
}
Tensor BatchMoments(const Tensor&) { FailWithoutCuda("batch_moments"); }
Tensor JoinMoments(const Tensor&) { FailWithoutCuda("join_moments"); }
void UpdateRunningStatistics(const std::vector<ops::RunningUpdate>&) {
  FailWithoutCuda("running_statistics");
}
Tensor BatchNormEval(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                     const Tensor&, const Tensor&,
                     const ops::BatchNormOptions&) {
  FailWithoutCuda("batch_norm");
}
ops::BatchNormGradients BatchNormBackward(const Tensor&, const Tensor&,
                                          const Tensor&,
                                          const ops::BatchNormResult&, bool,
                                          const ops::BatchNormOptions&) {
  FailWithoutCuda("batch_norm_backward");
}
ops::BatchNormGradients BatchNormEvalBackward(const Tensor&, const Tensor&,
                                              const Tensor&, const Tensor&,
                                              const Tensor&, const Tensor&,
                                              bool,
                                              const ops::BatchNormOptions&) {
  FailWithoutCuda("batch_norm_backward");
}

}  // namespace baton::cuda
