// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/accumulate.h"

#include <memory>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/multi_tensor.h"

namespace baton::autograd {
namespace {

bool IsDense(const Tensor& tensor) {
  return tensor.IsContiguous() ||
         tensor.IsContiguous(MemoryFormat::kChannelsLast);
}

void RequireAlike(const Gradient& sum, const Gradient& addend) {
  Require(sum.shape() == addend.shape() && sum.dtype() == addend.dtype(),
          "accumulate", "gradients of one value differ: ", Name(sum.dtype()),
          sum.shape().ToString(), " and ", Name(addend.dtype()),
          addend.shape().ToString());
}

// Adds gradients if one or both of them are rows.
void AddRows(Gradient& sum, Gradient addend) {
  RequireAlike(sum, addend);
  if (sum.is_rows() && addend.is_rows()) {
    const int64_t table_rows = sum.shape()[0];
    sum = Gradient(ops::Coalesce({ops::Cat({sum.index(), addend.index()}, 0),
                                  ops::Cat({sum.values(), addend.values()}, 0)},
                                 table_rows),
                   table_rows);
    return;
  }
  if (sum.is_rows()) std::swap(sum, addend);
  Tensor dense = std::exchange(sum, {}).values();
  if (!dense.IsContiguous() || !IsExclusive(dense)) dense = dense.Clone();
  ops::AddRowsInto(dense, {addend.index(), addend.values()});
  sum = std::move(dense);
}

}  // namespace

Tensor Dense(const Tensor& tensor) {
  return IsDense(tensor) ? tensor : tensor.Contiguous();
}

bool IsExclusive(const Tensor& tensor) {
  if (tensor.storage().use_count() != 1 || !IsDense(tensor)) return false;
  // use_count() does not synchronize with other threads, but releasing a second
  // reference does: what they read before they released theirs happens before
  // this.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): as above
  std::shared_ptr<Storage> synchronise = tensor.storage();
  return true;
}

void AccumulateInto(Tensor& sum, Tensor addend) {
  if (!addend.defined()) return;
  if (!sum.defined()) {
    sum = std::move(addend);
    return;
  }
  RequireAlike(sum, addend);
  if (IsExclusive(sum)) {
    ops::AddInto(sum, addend);
  } else if (IsExclusive(addend)) {
    ops::AddInto(addend, sum);  // addition commutes, bit for bit
    sum = std::move(addend);
  } else {
    sum = ops::Add(sum, addend);
  }
}

void AccumulateInto(Gradient& sum, Gradient addend) {
  if (!addend.defined()) return;
  if (!sum.defined()) {
    sum = std::move(addend);
    return;
  }
  if (!sum.is_rows() && !addend.is_rows()) {
    Tensor dense = std::exchange(sum, {}).values();
    AccumulateInto(dense, std::exchange(addend, {}).values());
    sum = std::move(dense);
    return;
  }
  AddRows(sum, std::move(addend));
}

void AddGradient(Gradient& sum, Gradient addend) {
  if (!sum.defined() || !addend.defined() ||
      (!IsHalf(addend.dtype()) && !IsHalf(sum.dtype())))
    return AccumulateInto(sum, std::move(addend));
  // A cast makes a new tensor, so it may be added to in place.
  if (IsHalf(sum.dtype())) sum = sum.WithValues(sum.values().To(DType::kF32));
  if (sum.is_rows() || addend.is_rows()) {
    addend = addend.WithValues(addend.values().To(DType::kF32));
    return AddRows(sum, std::move(addend));
  }
  if (!IsExclusive(sum.values())) sum = sum.values().Clone();
  ops::AddIntoMany({sum.values()}, {addend.values()});
}

}  // namespace baton::autograd
