// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/tensor.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

// The tensor of that dtype, shape and format whose elements begin where
// `storage` does, without gaps. Throws when it does not fit.
Tensor DenseView(std::shared_ptr<Storage> storage, const TensorSpec& spec);

// What a tensor is once its elements lie without gaps.
TensorSpec SpecOf(const Tensor& tensor);

}  // namespace baton::rpc
