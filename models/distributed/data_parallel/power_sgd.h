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

// How the means of gradients travel as thin matrices: a gradient M, of n rows,
// as P [n, rank] and Q [columns, rank] with P Q' close to it (Vogels et al.,
// "PowerSGD: Practical low-rank gradient compression", NeurIPS 2019). Each step
// is a step of the power iteration from the Q of the one before. What is lost
// is added to the member's gradient of the next step. Vectors, other dtypes
// than f32 and f64, and what would not be less, travel as they are. All members
// get the same bits. Thread-compatible.
class PowerSgd {
 public:
  PowerSgd(const std::vector<Variable>& parameters, int rank,
           std::shared_ptr<rpc::ProcessGroup> group);

  // Gradients on their way.
  struct Travelling {
    std::vector<Tensor> whole = {};  // as they are
    // Those of some parameters, and what stands for each: P, then Q.
    std::vector<size_t> thin = {};
    std::vector<Tensor> gradients = {}, lefts = {}, rights = {};
    Future<void> call = {};
    int64_t bytes = 0;  // that have been given
  };
  // Of some parameters, dense and of one dtype and device. All members call
  // these three with the same parameters, in the same order; before the second
  // and third `call` has ended or, on a GPU, been given.
  Travelling Begin(const std::vector<size_t>& parameters,
                   const std::vector<Tensor>& gradients);
  void Continue(Travelling& travelling);
  // Their means, in their place.
  void Finish(const Travelling& travelling);

 private:
  struct State {
    Tensor start, right, lost;  // Q at first and now [columns, rank]; like M
  };
  // [n, columns], as its elements lie.
  static Tensor AsMatrix(const Tensor& gradient);

  const std::shared_ptr<rpc::ProcessGroup> group_;
  std::vector<State> states_;  // by parameter; undefined of those as they are
};

}  // namespace baton::dist
