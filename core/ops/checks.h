// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <initializer_list>

#include "core/tensor.h"

// What ops require of their arguments; each throws Error led by `op`.
namespace baton::ops {

// All defined, and on one device.
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
// That no two elements share memory, as they do in an expanded view.
void RequireWritable(const char* op, const Tensor& target);

// Uninitialised, of `shape`, in the memory order of the first of the two that
// has this shape.
Tensor EmptyResult(const Shape& shape, DType dtype, const Tensor& a,
                   const Tensor& b);
// Shape and memory order of `x`, another dtype.
Tensor EmptyLike(const Tensor& x, DType dtype);

}  // namespace baton::ops
