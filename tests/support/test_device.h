// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/tensor.h"

// One test body for every device: tests put their inputs on TestDevice() and
// read results with To or ToVector. ctest runs their programs a second time,
// labelled cuda, with BATON_TEST_DEVICE=cuda; without a GPU, that run says so
// and is skipped.
namespace baton::test {

// Returns the device in BATON_TEST_DEVICE; the CPU if it is not set.
Device TestDevice();

inline Tensor Put(const Tensor& x) { return x.To(TestDevice()); }
template <typename T>
Tensor Put(const std::vector<T>& values, const Shape& shape) {
  return Put(Tensor::From(values, shape));
}
template <typename T>
Tensor Put(const std::vector<T>& values) {
  return Put(Tensor::From(values));
}

}  // namespace baton::test
