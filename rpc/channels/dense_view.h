// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/tensor.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

// Returns the tensor of spec's dtype, shape and format whose elements lie from
// the beginning of `storage` without gaps. Throws if it does not fit.
Tensor DenseView(std::shared_ptr<Storage> storage, const TensorSpec& spec);

// Returns the spec of `tensor` once its elements are laid out without gaps.
TensorSpec SpecOf(const Tensor& tensor);

}  // namespace baton::rpc
