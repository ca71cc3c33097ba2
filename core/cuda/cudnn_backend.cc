// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cudnn_backend.h"

#include <array>
#include <map>
#include <utility>

#include "core/cuda/capture.h"
#include "core/cuda/status.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton::cuda {
namespace {

constexpr size_t kMaxDevices = 64;

// Handles that no thread has. Making one takes much time and device memory.
class IdleHandles {
 public:
  cudnnHandle_t Take(size_t device) {
    MutexLock lock(mutex_);
    std::vector<cudnnHandle_t>& idle = idle_.at(device);
    if (idle.empty()) return nullptr;
    cudnnHandle_t handle = idle.back();
    idle.pop_back();
    return handle;
  }
  void Give(size_t device, cudnnHandle_t handle) {
    MutexLock lock(mutex_);
    idle_.at(device).push_back(handle);
  }

  // Never destroyed, because threads end while the process does.
  static IdleHandles& Get() {
    static auto* const handles = new IdleHandles;
    return *handles;
  }

 private:
  Mutex mutex_;
  std::array<std::vector<cudnnHandle_t>, kMaxDevices> idle_
      ABSL_GUARDED_BY(mutex_);
};

// A thread's handles, one for each stream, because handles have memory that
// work on two streams would share. A stream's handle also serves the stream
// that a capture uses in its place, so that the capture finds what was made
// before it.
class HandlesOfThread {
 public:
  ~HandlesOfThread() {
    for (const auto& [place, serving] : handles_) {
      if (serving.handle != nullptr)
        IdleHandles::Get().Give(place.first, serving.handle);
    }
  }

  cudnnHandle_t For(const char* op, size_t device, cudaStream_t stream) {
    const Device gpu = Device::Cuda(static_cast<int>(device));
    Serving& serving = handles_[{device, CurrentStream(gpu).index()}];
    if (serving.handle == nullptr) {
      serving.handle = IdleHandles::Get().Take(device);
      serving.stream = nullptr;
    }
    if (serving.handle == nullptr) {
      const RelaxedCapture relaxed;
      CheckCudnn(op, cudnnCreate(&serving.handle));
    }
    if (serving.stream != stream) {
      CheckCudnn(op, cudnnSetStream(serving.handle, stream));
      serving.stream = stream;
    }
    return serving.handle;
  }

 private:
  struct Serving {
    cudnnHandle_t handle = nullptr;
    cudaStream_t stream = nullptr;  // the handle's
  };
  std::map<std::pair<size_t, int>, Serving> handles_;  // by device and stream
};

}  // namespace

void CheckCudnn(const char* op, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> said = {};
  cudnnGetLastErrorString(said.data(), said.size());
  Fail(op,
       absl::StrCat("cuDNN: ", cudnnGetErrorString(status), ": ", said.data()),
       absl::StatusCode::kInternal);
}

cudnnHandle_t CudnnHandle(const char* op, int device, cudaStream_t stream) {
  thread_local HandlesOfThread handles;
  return handles.For(op, static_cast<size_t>(device), stream);
}

Descriptor::Descriptor(const char* op, cudnnBackendDescriptorType_t type)
    : op_(op) {
  cudnnBackendDescriptor_t made = nullptr;
  CheckCudnn(op, cudnnBackendCreateDescriptor(type, &made));
  descriptor_.reset(made);
}

cudnnStatus_t Descriptor::Give(cudnnBackendAttributeName_t name,
                               const Descriptor& value) {
  cudnnBackendDescriptor_t raw = value.get();
  return GiveRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

cudnnStatus_t Descriptor::Give(cudnnBackendAttributeName_t name,
                               const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.get());
  return GiveRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}

void Descriptor::Finalize() { CheckCudnn(op_, cudnnBackendFinalize(get())); }

bool Descriptor::TryFinalize() {
  return cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS;
}

std::vector<Descriptor> Descriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
    size_t most) const {
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < most; ++i) {
    values.emplace_back(op_, type);
    raw.push_back(values.back().get());
  }
  const size_t count =
      GetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(count),
               values.end());
  return values;
}

cudnnStatus_t Descriptor::GiveRaw(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type,
                                  size_t count, const void* values) {
  return cudnnBackendSetAttribute(get(), name, type,
                                  static_cast<int64_t>(count), values);
}

size_t Descriptor::GetRaw(cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, size_t most,
                          void* values) const {
  int64_t count = 0;
  CheckCudnn(
      op_, cudnnBackendGetAttribute(
               get(), name, type, static_cast<int64_t>(most), &count, values));
  return std::min(static_cast<size_t>(count), most);
}

}  // namespace baton::cuda
