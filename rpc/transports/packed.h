// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "core/tensor.h"
#include "rpc/transport.h"

namespace baton::rpc {

// Returns InvalidArgument that names the first undefined tensor; others can be
// sent.
absl::Status CheckTensors(const Message& message);

// Returns `tensor` with its elements in one dense block, row-major or, if it
// has this format already, channels-last. Copies only if it is not dense.
Tensor Packed(const Tensor& tensor);

// Like Packed, but never shares memory: takes the tensor over if the argument
// is the only handle to its storage, and copies it otherwise.
Tensor PackedCopy(Tensor tensor);

// Returns a packed copy of a GPU tensor in pinned CPU memory. Waits for the
// copy.
Tensor OnHost(const Tensor& tensor);

// MadeOnGpu returns an uninitialized tensor on a GPU with the spec of `like`.
// MoveToGpu copies the elements into it once they have arrived, and returns
// before the copy is done.
Tensor MadeOnGpu(const Tensor& like, Device gpu);
void MoveToGpu(const Tensor& from, const Tensor& to);
// Does both.
Tensor OnGpu(const Tensor& tensor, Device gpu);

}  // namespace baton::rpc
