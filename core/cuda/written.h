// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/functional/any_invocable.h"
#include "core/tensor.h"

// core/no_cuda has the same symbol.
namespace baton::cuda {

// Returns a query, to be repeated until it returns true: whether the present
// work that writes the tensor, of a GPU, has ended, or the device has failed.
// Any thread may call it. WhenWritten throws Error for what the device reports.
absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor);

}  // namespace baton::cuda
