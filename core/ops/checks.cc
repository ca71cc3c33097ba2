// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/checks.h"

namespace baton::ops {

void RequireOneDevice(const char* op, const Tensor& first,
                      std::initializer_list<const Tensor*> rest) {
  Require(first.defined(), op, "an argument is undefined");
  for (const Tensor* x : rest) {
    Require(x->defined(), op, "an argument is undefined");
    Require(x->device() == first.device(), op,
            "expected tensors on one device, got ", first.device().ToString(),
            " and ", x->device().ToString());
  }
}

void RequireSameDType(const char* op, const Tensor& a, const Tensor& b) {
  Require(a.dtype() == b.dtype(), op, "expected one dtype, got ",
          Name(a.dtype()), " and ", Name(b.dtype()));
}

void RequireDType(const char* op, const char* name, const Tensor& x,
                  DType dtype) {
  Require(x.dtype() == dtype, op, "expected ", name, " of ", Name(dtype),
          ", got ", Name(x.dtype()));
}

void RequireFloating(const char* op, const Tensor& x) {
  Require(IsFloating(x.dtype()), op, "expected a floating dtype, got ",
          Name(x.dtype()));
}

void RequireSameShape(const char* op, const Tensor& a, const Tensor& b) {
  Require(a.shape() == b.shape(), op, "expected equal shapes, got ",
          a.shape().ToString(), " and ", b.shape().ToString());
}

void RequireWritable(const char* op, const Tensor& target) {
  for (int axis = 0; axis < target.rank(); ++axis) {
    Require(target.strides()[static_cast<size_t>(axis)] != 0 ||
                target.dim(axis) <= 1,
            op, "the target is an expanded view: its elements share memory");
  }
}

Tensor EmptyResult(const Shape& shape, DType dtype, const Tensor& a,
                   const Tensor& b) {
  const Tensor& model = a.shape() == shape ? a : b;
  const MemoryFormat format = model.shape() == shape
                                  ? model.SuggestFormat()
                                  : MemoryFormat::kContiguous;
  return Tensor::Empty(
      shape, {.dtype = dtype, .device = a.device(), .format = format});
}

Tensor EmptyLike(const Tensor& x, DType dtype) {
  return Tensor::Empty(
      x.shape(),
      {.dtype = dtype, .device = x.device(), .format = x.SuggestFormat()});
}

}  // namespace baton::ops
