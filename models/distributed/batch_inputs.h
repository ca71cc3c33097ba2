// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "models/distributed/stage_routes.h"

namespace baton::dist {

// The inputs of a pipeline's batch, without targets: one tensor or several. The
// first dimension of each is the batch's rows, and a micro-batch takes the same
// rows of all of them.
//
//   pipeline->Step(sgd, images, labels);
//   pipeline->Step(sgd, {questions, answers}, labels);
//
// Value type.
class BatchInputs {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers pass tensors as they are
  BatchInputs(Tensor only) : values_{std::move(only)} {}
  BatchInputs(Values values) : values_(std::move(values)) {}
  BatchInputs(std::initializer_list<Tensor> values) : values_(values) {}
  // NOLINTEND(google-explicit-constructor)

  const Values& values() const { return values_; }
  // Returns InvalidArgument if there are no inputs or their rows differ.
  absl::StatusOr<int64_t> Rows() const;
  // Returns InvalidArgument unless targets have the same number of rows.
  absl::Status CheckTargets(const Tensor& targets) const;

 private:
  Values values_;
};

}  // namespace baton::dist
