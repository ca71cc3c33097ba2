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

// What a batch gives a pipeline beside targets: one tensor, or several, each
// with the batch's rows first, of which a micro-batch has the same rows of all.
//
//   pipeline->Step(sgd, images, labels);
//   pipeline->Step(sgd, {questions, answers}, labels);
//
// A value.
class BatchInputs {
 public:
  // NOLINTBEGIN(google-explicit-constructor): arguments read as such
  BatchInputs(Tensor only) : values_{std::move(only)} {}
  BatchInputs(Values values) : values_(std::move(values)) {}
  BatchInputs(std::initializer_list<Tensor> values) : values_(values) {}
  // NOLINTEND(google-explicit-constructor)

  const Values& values() const { return values_; }
  // InvalidArgument where there are none, or not the same of all.
  absl::StatusOr<int64_t> Rows() const;
  // InvalidArgument unless targets have as many rows.
  absl::Status CheckTargets(const Tensor& targets) const;

 private:
  Values values_;
};

}  // namespace baton::dist
