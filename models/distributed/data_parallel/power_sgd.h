// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "core/tensor.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// Reduces gradients as low-rank matrices: a gradient M of n rows is sent as P
// [n, rank] and Q [columns, rank], such that P Q' approximates M (Vogels et
// al., "PowerSGD: Practical low-rank gradient compression", NeurIPS 2019). Each
// step continues the power iteration from the previous Q. The error is added to
// the member's gradient in the next step. Vectors, dtypes other than f32 and
// f64, and gradients that would not become smaller are sent as they are. All
// members get the same bits. Thread-compatible.
class PowerSgd {
 public:
  PowerSgd(const std::vector<Variable>& parameters, int rank,
           std::shared_ptr<rpc::ProcessGroup> group);

  // Gradients that are being reduced.
  struct Travelling {
    std::vector<Tensor> whole = {};  // sent as they are
    // The parameters whose gradients are compressed, and P and Q of each.
    std::vector<size_t> thin = {};
    std::vector<Tensor> gradients = {}, lefts = {}, rights = {};
    Future<void> call = {};
    int64_t bytes = 0;  // bytes that have been sent
  };
  // Reduces gradients that are dense and of one dtype and device. All members
  // must call these three methods with the same parameters, in the same order.
  // Before the second and the third call, `call` must be done or, on a GPU,
  // enqueued.
  Travelling Begin(const std::vector<size_t>& parameters,
                   const std::vector<Tensor>& gradients);
  void Continue(Travelling& travelling);
  // Replaces the gradients by their means.
  void Finish(const Travelling& travelling);

 private:
  struct State {
    Tensor start, right, lost;  // Q initially and now, [columns, rank]; the
                                // error, shaped as M
  };
  // Returns the gradient as [n, columns], in its memory order.
  static Tensor AsMatrix(const Tensor& gradient);

  const std::shared_ptr<rpc::ProcessGroup> group_;
  std::vector<State> states_;  // by parameter; undefined for those sent as they
                               // are
};

}  // namespace baton::dist
