// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/packed.h"

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/stream.h"

namespace baton::rpc {

absl::Status CheckTensors(const Message& message) {
  for (size_t i = 0; i < message.tensors.size(); ++i) {
    const Tensor& tensor = message.tensors[i];
    if (!tensor.defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the message is undefined"));
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
  return copy.CopyFrom(packed);
}

Tensor OnHost(const Tensor& tensor) {
  const BlockingScope waiting;
  return Tensor::Empty(tensor.shape(), {.dtype = tensor.dtype(),
                                        .format = tensor.SuggestFormat(),
                                        .pinned = true})
      .CopyFrom(tensor);
}

Tensor MadeOnGpu(const Tensor& like, Device gpu) {
  const StreamScope scope(Stream::ForCopies(Device::Cpu(), gpu));
  return Tensor::Empty(
      like.shape(),
      {.dtype = like.dtype(), .device = gpu, .format = like.SuggestFormat()});
}

void MoveToGpu(const Tensor& from, const Tensor& to) {
  const StreamScope scope(Stream::ForCopies(Device::Cpu(), to.device()));
  to.CopyFromAsync(from);
}

Tensor OnGpu(const Tensor& tensor, Device gpu) {
  const Tensor moved = MadeOnGpu(tensor, gpu);
  MoveToGpu(tensor, moved);
  return moved;
}

}  // namespace baton::rpc
