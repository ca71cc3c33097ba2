// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/memory.h"

#include <cuda_runtime_api.h>

#include <memory>

#include "core/cpu/copy.h"
#include "core/cuda/capture.h"
#include "core/cuda/copy.h"
#include "core/cuda/handles.h"
#include "core/cuda/launch.h"
#include "core/cuda/peers.h"
#include "core/cuda/status.h"
#include "core/pending_read.h"
#include "core/tensor.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "copy";

bool IsDense(const Tensor& x) {
  return x.IsContiguous() || x.IsContiguous(MemoryFormat::kChannelsLast);
}

// Strides of axes of one element are arbitrary, so they do not count.
bool SameBytes(const Tensor& a, const Tensor& b) {
  constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;
  return a.dtype() == b.dtype() &&
         ((a.IsContiguous() && b.IsContiguous()) ||
          (a.IsContiguous(kLast) && b.IsContiguous(kLast)));
}

// Returns an empty tensor with the shape and dtype of `model` and, if that is
// dense, its order.
Tensor DenseLike(const Tensor& model, const TensorOptions& place) {
  TensorOptions options = place;
  options.dtype = model.dtype();
  options.format = model.SuggestFormat();
  return Tensor::Empty(model.shape(), options);
}

// Orders the copy with the other uses of pinned memory.
void Note(const Tensor& host, const Stream& stream, bool written) {
  if (StreamUse* use = host.storage()->use().get(); use != nullptr)
    written ? use->Write(stream) : use->Read(stream);
}

// Returns whether the owner of the memory has pinned it; then it has no
// StreamUse.
bool PinnedByOthers(const Tensor& host) {
  if (host.storage()->use() != nullptr) return false;
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, host.raw_data()) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

// Keeps the memory, and makes writers wait, until the present work of `stream`
// is done.
void KeepUntilDone(const Tensor& host, const Stream& stream) {
  struct Kept {
    explicit Kept(const Tensor& tensor) : read(tensor), pin(read.Pin()) {}
    PendingRead read;
    std::shared_ptr<const Tensor> pin;
  };
  AfterWork(stream, [kept = std::make_shared<Kept>(host)](
                        const absl::Status&) mutable { kept.reset(); });
}

void ToDevice(const Tensor& target, const Tensor& source, bool wait) {
  if (!SameBytes(target, source)) {
    const Tensor host = DenseLike(target, {});
    cpu::Copy(host, source);
    if (IsDense(target)) return ToDevice(target, host, wait);
    const Tensor staged = DenseLike(target, {.device = target.device()});
    ToDevice(staged, host, wait);
    return CopyOnDevice(target, staged);
  }
  const Launch launch(kOp, {&target}, {});
  const Stream stream = CurrentStream(target.device());
  Note(source, stream, false);
  launch.Check(cudaMemcpyAsync(target.raw_data(), source.raw_data(),
                               source.nbytes(), cudaMemcpyHostToDevice,
                               launch.stream()));
  // A copy from pageable memory has read the bytes when the call returns.
  if (wait && source.storage()->use()) stream.Synchronize();
  if (PinnedByOthers(source) && CurrentCapture() == nullptr)
    KeepUntilDone(source, stream);
}

void ToHost(const Tensor& target, const Tensor& source, bool wait) {
  if (!SameBytes(target, source)) {
    const Tensor staged = DenseLike(source, {});
    ToHost(staged, source.Contiguous(staged.SuggestFormat()), true);
    return cpu::Copy(target, staged);
  }
  const Launch launch(kOp, {}, {&source});
  const Stream stream = CurrentStream(source.device());
  Note(target, stream, true);
  launch.Check(cudaMemcpyAsync(target.raw_data(), source.raw_data(),
                               source.nbytes(), cudaMemcpyDeviceToHost,
                               launch.stream()));
  if (wait || !target.storage()->use()) stream.Synchronize();
}

void ToOtherDevice(const Tensor& target, const Tensor& source) {
  if (!SameBytes(target, source)) {
    const Tensor cast = source.To(target.dtype());
    const Tensor dense = cast.Contiguous(
        IsDense(target) ? target.SuggestFormat() : cast.SuggestFormat());
    if (SameBytes(target, dense)) return ToOtherDevice(target, dense);
    const Tensor staged = DenseLike(dense, {.device = target.device()});
    ToOtherDevice(staged, dense);
    return CopyOnDevice(target, staged);
  }
  CopyBetween(target, source);
}

}  // namespace

int DeviceCount() {
  static const int count = [] {
    int found = 0;
    return cudaGetDeviceCount(&found) == cudaSuccess ? found : 0;
  }();
  return count;
}

void Copy(const Tensor& target, const Tensor& source, bool wait) {
  if (target.numel() == 0) return;
  if (target.device() == source.device()) {
    CopyOnDevice(target, source);
  } else if (source.device().is_cpu()) {
    ToDevice(target, source, wait);
  } else if (target.device().is_cpu()) {
    ToHost(target, source, wait);
  } else {
    ToOtherDevice(target, source);
  }
}

void Fill(const Tensor& target, double value) {
  if (target.numel() > 0) FillOnDevice(target, value);
}

}  // namespace baton::cuda
