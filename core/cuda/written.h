// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/functional/any_invocable.h"
#include "core/tensor.h"

// core/no_cuda has the same symbol.
namespace baton::cuda {

// Whether what has been given by now to write the tensor, of a GPU, has ended,
// or the device has failed: to be asked on any thread, again and again until it
// has. Throws Error for what the device reports.
absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor);

}  // namespace baton::cuda
