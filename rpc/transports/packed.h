// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "core/tensor.h"
#include "rpc/transport.h"

namespace baton::rpc {

// InvalidArgument naming the first tensor that cannot travel: one that is
// undefined.
absl::Status CheckTensors(const Message& message);

// `tensor` with its elements in one dense block, row-major or, when it lies so
// already, channels-last: itself if it is dense, else a copy.
Tensor Packed(const Tensor& tensor);

// As Packed, and never sharing memory with anybody: takes the tensor over when
// the argument is the only handle to its storage, and copies otherwise.
Tensor PackedCopy(Tensor tensor);

// A tensor of a GPU, packed, in memory of the CPU that GPUs copy by themselves;
// waits for it.
Tensor OnHost(const Tensor& tensor);

// A tensor on a GPU as the other one, and what brings that one's elements there
// once they have come; returns before they are there.
Tensor MadeOnGpu(const Tensor& like, Device gpu);
void MoveToGpu(const Tensor& from, const Tensor& to);
// Both together.
Tensor OnGpu(const Tensor& tensor, Device gpu);

}  // namespace baton::rpc
