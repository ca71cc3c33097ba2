// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "core/cuda/written.h"
#include "core/status.h"
#include "core/stream.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl_gpu.h"

namespace baton::rpc {
namespace {

// A stream that copies of this process do not use, unless it has many GPUs: the
// one for copies from the GPU of this index. The memory of what comes is made
// there, as it is given no work, so that the memory is free at once.
constexpr int kHome = 12;

class CudaNccl final : public NcclGpu {
 public:
  explicit CudaNccl(Device own)
      : own_(own), home_(Stream::ForCopies(Device::Cuda(kHome), own)) {}

  absl::StatusOr<std::string> Version() override { return cuda::NcclVersion(); }
  absl::StatusOr<std::string> NewId() override { return cuda::NewNcclId(); }
  absl::StatusOr<std::shared_ptr<cuda::NcclLine>> Join(const std::string& id,
                                                       bool sends) override {
    return cuda::JoinNccl(id, sends, own_.index());
  }

  absl::StatusOr<Poller::Question> WhenWritten(const Tensor& tensor) override {
    return CatchErrors([&]() -> absl::StatusOr<Poller::Question> {
      return cuda::WhenWritten(tensor);
    });
  }

  absl::StatusOr<Tensor> Make(const TensorSpec& spec) override {
    return CatchErrors([&]() -> absl::StatusOr<Tensor> {
      const StreamScope scope(home_);
      return DenseView(Storage::Allocate(spec.bytes, own_), spec);
    });
  }

 private:
  const Device own_;
  const Stream home_;
};

}  // namespace

std::shared_ptr<NcclGpu> MakeCudaNccl(Device own) {
  return std::make_shared<CudaNccl>(own);
}

}  // namespace baton::rpc
