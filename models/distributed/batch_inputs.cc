// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/batch_inputs.h"

#include "absl/strings/str_cat.h"

namespace baton::dist {

absl::StatusOr<int64_t> BatchInputs::Rows() const {
  if (values_.empty())
    return absl::InvalidArgumentError("a batch needs at least one input");
  for (size_t i = 0; i < values_.size(); ++i) {
    const Tensor& each = values_[i];
    if (!each.defined() || each.rank() == 0 || each.dim(0) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " of the batch has no rows: its shape is ",
          each.defined() ? each.shape().ToString() : "(undefined)"));
    }
    if (each.dim(0) != values_[0].dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the inputs of a batch differ in their rows: input 0 has shape ",
          values_[0].shape().ToString(), ", input ", i, " ",
          each.shape().ToString()));
    }
  }
  return values_[0].dim(0);
}

}  // namespace baton::dist
