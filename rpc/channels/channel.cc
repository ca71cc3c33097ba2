// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/channel.h"

#include <utility>

namespace baton::rpc {

Tensor DenseView(std::shared_ptr<Storage> storage, const TensorSpec& spec) {
  const auto view = [&](const Shape& shape) {
    return Tensor::FromStorage(std::move(storage), spec.dtype, shape,
                               ContiguousStrides(shape), 0);
  };
  if (spec.format == MemoryFormat::kContiguous) return view(spec.shape);
  const Shape& nchw = spec.shape;
  return view({nchw[0], nchw[2], nchw[3], nchw[1]}).Permute({0, 3, 1, 2});
}

TensorSpec SpecOf(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.SuggestFormat(),
          tensor.nbytes()};
}

}  // namespace baton::rpc
