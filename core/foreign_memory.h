// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

#include "core/stream.h"
#include "core/tensor.h"

// Of DLPack's header (dlpack/dlpack.h), by which libraries of arrays hand each
// other memory.
struct DLManagedTensor;

// Tensors in memory of another library, and memory of Baton's for another:
// nothing is copied, and who writes on one side is seen on the other.
namespace baton {

// A row-major tensor in memory that the caller has, of `device`. `release` runs
// once when the last tensor in it has gone and, on a GPU, when Baton's work
// with it has ended; until then the memory stays. Throws
// Error(InvalidArgument), and does not call `release`, for memory that is not
// aligned to the elements and for none where the shape has some.
Tensor FromMemory(void* data, const Shape& shape, DType dtype,
                  std::function<void()> release, Device device = Device::Cpu());

// A tensor in what another library has exported, whose deleter runs as
// `release` does above. Takes CPU memory (pinned, too) and that of NVIDIA's
// GPUs, with strides of 0 or more. On a GPU the elements must be written by
// now: the exporter's stream has been waited for. Throws Error(InvalidArgument)
// for what Baton has no tensor for, and then leaves the deleter to the caller.
Tensor FromDlpack(DLManagedTensor* exported);

// The same elements for another library, which calls the deleter when it is
// done, on any thread; the tensor's memory lives until then. On a GPU this
// returns once they are written. Throws Error(InvalidArgument) for an undefined
// tensor.
DLManagedTensor* ToDlpack(const Tensor& tensor);
// The same, but on a GPU it returns at once: for work that the other library
// gives to `reader` from now on.
DLManagedTensor* ToDlpack(const Tensor& tensor, const Stream& reader);

}  // namespace baton
