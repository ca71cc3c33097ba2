// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/rnn.h"

#include "core/no_cuda/absent.h"

namespace baton::cuda {

ops::RnnResult RnnForward(const ops::RnnInputs&, const ops::RnnOptions&, bool) {
  FailWithoutCuda("rnn");
}
ops::RnnGradients RnnBackward(const ops::RnnInputs&, const ops::RnnResult&,
                              const Tensor&, const Tensor&, const Tensor&,
                              const ops::RnnOptions&) {
  FailWithoutCuda("rnn");
}

}  // namespace baton::cuda
