// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

#include "core/stream.h"
#include "core/tensor.h"

// Declared in DLPack's header (dlpack/dlpack.h), through which array libraries
// share memory.
struct DLManagedTensor;

// These functions make tensors of another library's memory, and lend Baton's
// memory to another library. Nothing is copied: both sides see each other's
// writes.
namespace baton {

// Returns a row-major tensor in the caller's memory on `device`. `release` runs
// once, when the last tensor in it is gone and, on a GPU, Baton's work with it
// has ended; the memory must stay valid until then. Throws
// Error(InvalidArgument), without calling `release`, for memory that is not
// aligned to the elements, and for null if the shape has elements.
Tensor FromMemory(void* data, const Shape& shape, DType dtype,
                  std::function<void()> release, Device device = Device::Cpu());

// Returns a tensor in memory that another library has exported; its deleter
// runs as `release` does above. Accepts CPU memory, also pinned, and memory of
// NVIDIA's GPUs, with strides of at least 0. On a GPU the elements must already
// be written: the caller has waited for the exporter's stream. Throws
// Error(InvalidArgument) for what a Tensor cannot represent; the caller must
// then call the deleter.
Tensor FromDlpack(DLManagedTensor* exported);

// Returns the same elements for another library, which calls the deleter on any
// thread when it is done; the memory stays valid until then. On a GPU this
// returns once they are written. Throws Error(InvalidArgument) for an undefined
// tensor.
DLManagedTensor* ToDlpack(const Tensor& tensor);
// Like the above, but on a GPU it returns at once: the elements may be used by
// work that the other library gives to `reader` from now on.
DLManagedTensor* ToDlpack(const Tensor& tensor, const Stream& reader);

}  // namespace baton
