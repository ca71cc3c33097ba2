// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "autograd/variable.h"
#include "core/tensor.h"
#include "models/distributed/data_parallel/gradient_hook.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// Reduces gradients as low-rank matrices: a gradient M of n rows is sent as P
// [n, rank] and Q [columns, rank], such that P Q' approximates M (Vogels et
// al., "PowerSGD: Practical low-rank gradient compression", NeurIPS 2019). Each
// step continues the power iteration from the previous Q. The error is added to
// the member's gradient in the next step, so gradients must be finite. P, Q and
// the error of gradients in bf16 or f16 are f32. Vectors and gradients that
// would not become smaller are sent as they are. All members get the same bits.
// Thread-compatible.
class PowerSgd {
 public:
  PowerSgd(const std::vector<Variable>& parameters, int rank);

  // Can be used as a GradientHook; the object must outlive the reductions that
  // this returns. All members must pass the same parameters in the same order.
  BucketReduction Reduce(rpc::ProcessGroup& group,
                         const GradientBucket& bucket);

 private:
  struct State {
    Tensor start, right, lost;  // Q initially and now, [columns, rank]; the
                                // error, shaped as M
  };
  // The gradients of a bucket that are compressed.
  struct Thin {
    std::vector<size_t> parameters;
    std::vector<Tensor> gradients;            // as matrices
    std::vector<Tensor> sums, lefts, rights;  // M with the error; P; Q
  };
  // Returns the gradient as [n, columns], in its memory order.
  static Tensor AsMatrix(const Tensor& gradient);
  BucketReduction ReduceRights(rpc::ProcessGroup& group, Thin thin);
  void Finish(const Thin& thin);

  std::vector<State> states_;  // by parameter; undefined for those sent as they
                               // are
};

}  // namespace baton::dist
