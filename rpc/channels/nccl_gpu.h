// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/cuda/nccl.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/poller.h"

namespace baton::rpc {

// What the channel of NCCL asks of NCCL and of this process's GPU, beside what
// it asks of an IpcGpu; tests have another one. Failures are statuses.
// Thread-safe.
class NcclGpu {
 public:
  virtual ~NcclGpu() = default;
  // These as in core/cuda/nccl.h.
  virtual absl::StatusOr<std::string> Version() = 0;
  virtual absl::StatusOr<std::string> NewId() = 0;
  virtual absl::StatusOr<std::shared_ptr<cuda::NcclLine>> Join(
      const std::string& id, bool sends) = 0;

  // Whether what has been given by now to write the tensor has ended.
  virtual absl::StatusOr<Poller::Question> WhenWritten(
      const Tensor& tensor) = 0;
  // A tensor of this GPU to receive into, of memory that nothing writes.
  virtual absl::StatusOr<Tensor> Make(const TensorSpec& spec) = 0;
};

std::shared_ptr<NcclGpu> MakeCudaNccl(Device own);

}  // namespace baton::rpc
