// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/batch_inputs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// For errors: "12 rows (shape [12, 6])".
std::string RowsOf(const Tensor& x) {
  return absl::StrCat(x.rank() == 0 ? 0 : x.dim(0), " rows (shape ",
                      x.shape().ToString(), ")");
}

}  // namespace

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
          "the inputs of a batch differ in their rows: input 0 ", "has ",
          RowsOf(values_[0]), ", input ", i, " has ", RowsOf(each)));
    }
  }
  return values_[0].dim(0);
}

absl::Status BatchInputs::CheckTargets(const Tensor& targets) const {
  ASSIGN_OR_RETURN(const int64_t rows, Rows());
  if (targets.rank() > 0 && targets.dim(0) == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the inputs of a batch have ", RowsOf(values_[0]),
                   ", but its targets have ", RowsOf(targets),
                   ": give a target for each row of inputs"));
}

}  // namespace baton::dist
