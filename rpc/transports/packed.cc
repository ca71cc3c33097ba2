// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/packed.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::rpc {

absl::Status CheckTensors(const Message& message) {
  for (size_t i = 0; i < message.tensors.size(); ++i) {
    const Tensor& tensor = message.tensors[i];
    if (!tensor.defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the message is undefined"));
    }
    if (!tensor.device().is_cpu()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the message is on ",
                       tensor.device().ToString(), ", only cpu can be sent"));
    }
  }
  return absl::OkStatus();
}

Tensor Packed(const Tensor& tensor) {
  return tensor.Contiguous(tensor.SuggestFormat());
}

Tensor PackedCopy(Tensor tensor) {
  const bool unique = tensor.storage().use_count() == 1;
  Tensor packed = Packed(tensor);
  if (unique || packed.storage() != tensor.storage()) return packed;
  Tensor copy =
      Tensor::Empty(packed.shape(), {.dtype = packed.dtype(),
                                     .device = packed.device(),
                                     .format = packed.SuggestFormat()});
  if (copy.nbytes() > 0) {
    std::memcpy(copy.raw_data(), packed.raw_data(), copy.nbytes());
  }
  return copy;
}

}  // namespace baton::rpc
