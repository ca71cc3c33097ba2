// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/written.h"

#include "core/cuda/owned_event.h"
#include "core/stream.h"

namespace baton::cuda {

absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor) {
  const Stream stream = CurrentStream(tensor.device());
  tensor.storage()->use()->Read(stream);
  StreamPoint written(stream);
  written.Record();
  return written;
}

}  // namespace baton::cuda
