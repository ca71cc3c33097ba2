// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ops/optimizer_rules.h"
#include "core/tensor.h"

namespace baton::dist {

// Steps dense values by a rule, whose state it keeps. Values are never written
// in place, so that readers of the former ones need no lock. Thread-compatible.
class DenseStepper {
 public:
  // For values of f32. `slots` and `steps` are the rule's state to continue
  // from, laid out as the values; a missing slot begins with its initial value.
  DenseStepper(const ops::StepRule& rule, const Shape& shape, Device device,
               const std::vector<Tensor>& slots = {}, int64_t steps = 0);

  // The gradients of each step, which uses their sum, added in this order.
  using Steps = std::vector<std::vector<Tensor>>;
  // Returns the values after these steps, which begin at `before`. Gradients
  // are multiplied by `scale`. All steps are done in one pass over the values,
  // with the rule's learning rate unless another one is given.
  Tensor Step(const Tensor& before, const Steps& steps, double scale,
              std::optional<double> rate = std::nullopt);

  int64_t steps() const { return steps_; }
  std::vector<Tensor> CopyOfSlots() const;

 private:
  // Elements [begin, end) of the values.
  struct Part {
    int64_t begin, end;
    const Tensor &before, &after;
    // Where they are defined: the factor of the gradients, and the rate.
    const Tensor &factor, &rate;
  };
  // `sum` is scratch memory that the next part reuses.
  void StepPart(const Part& part, const Steps& steps, Tensor& sum) const;

  const ops::StepRule rule_;
  std::vector<Tensor> slots_;
  int64_t steps_;  // done so far
};

}  // namespace baton::dist
