// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/channel.h"

#include <algorithm>
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

absl::Status CheckElements(DType dtype, std::span<const std::byte> bytes) {
  if (dtype != DType::kBool ||
      std::all_of(bytes.begin(), bytes.end(),
                  [](std::byte byte) { return byte <= std::byte{1}; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a bool tensor with bytes other than 0 and 1");
}

TensorSpec SpecOf(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), tensor.SuggestFormat(),
          tensor.nbytes()};
}

}  // namespace baton::rpc
