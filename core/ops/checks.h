// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <initializer_list>

#include "core/tensor.h"

// Checks of an op's arguments. Each throws Error(InvalidArgument) whose text
// begins with `op`.
namespace baton::ops {

// Requires that all tensors are defined and on one device.
void RequireOneDevice(const char* op, const Tensor& first,
                      std::initializer_list<const Tensor*> rest);
template <typename... Rest>
void RequireOneDevice(const char* op, const Tensor& first,
                      const Rest&... rest) {
  RequireOneDevice(op, first, {&rest...});
}

void RequireSameDType(const char* op, const Tensor& a, const Tensor& b);
void RequireDType(const char* op, const char* name, const Tensor& x,
                  DType dtype);
void RequireFloating(const char* op, const Tensor& x);
void RequireSameShape(const char* op, const Tensor& a, const Tensor& b);
// Requires that no two elements share memory, as they do in an expanded view.
void RequireWritable(const char* op, const Tensor& target);

// Returns an uninitialized tensor of `shape`, in the memory order of `a` if it
// has this shape, else in that of `b` if that has it.
Tensor EmptyResult(const Shape& shape, DType dtype, const Tensor& a,
                   const Tensor& b);
// Returns an uninitialized tensor with the shape and memory order of `x`.
Tensor EmptyLike(const Tensor& x, DType dtype);

}  // namespace baton::ops
