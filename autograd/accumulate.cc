// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/accumulate.h"

#include <memory>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"

namespace baton::autograd {
namespace {

bool IsDense(const Tensor& tensor) {
  return tensor.IsContiguous() ||
         tensor.IsContiguous(MemoryFormat::kChannelsLast);
}

}  // namespace

Tensor Dense(const Tensor& tensor) {
  return IsDense(tensor) ? tensor : tensor.Contiguous();
}

bool IsExclusive(const Tensor& tensor) {
  if (tensor.storage().use_count() != 1 || !IsDense(tensor)) return false;
  // use_count() does not synchronise. Letting go of a second reference does:
  // what other threads read before they let go of theirs happens before us.
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
  Require(sum.shape() == addend.shape() && sum.dtype() == addend.dtype(),
          "accumulate", "gradients of one value differ: ", Name(sum.dtype()),
          sum.shape().ToString(), " and ", Name(addend.dtype()),
          addend.shape().ToString());
  if (IsExclusive(sum)) {
    ops::AddInto(sum, addend);
  } else if (IsExclusive(addend)) {
    ops::AddInto(addend, sum);  // addition commutes, bit for bit
    sum = std::move(addend);
  } else {
    sum = ops::Add(sum, addend);
  }
}

void AddGradient(Tensor& sum, Tensor addend) {
  if (sum.defined() && addend.defined() && IsHalf(addend.dtype())) {
    // A cast is a tensor of its own, so that it may be added to.
    if (IsHalf(sum.dtype())) sum = sum.To(DType::kF32);
    if (!IsExclusive(sum)) sum = sum.Clone();
    ops::AddIntoMany({sum}, {addend});
    return;
  }
  AccumulateInto(sum, std::move(addend));
}

}  // namespace baton::autograd
