// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <bit>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/cuda/capture.h"
#include "core/cuda/contexts.h"
#include "core/cuda/handles.h"
#include "core/cuda/memory.h"
#include "core/cuda/status.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

// Pinning is slow, so blocks are kept, by powers of two of their size.
class PinnedPool {
 public:
  void* Allocate(size_t bytes) {
    const size_t size = SizeClass(bytes);
    const DeviceScope scope(DeviceWithContext());
    MutexLock lock(mutex_);
    CollectLocked();
    auto& blocks = free_[size];
    if (!blocks.empty()) {
      void* data = blocks.back();
      blocks.pop_back();
      return data;
    }
    const RelaxedCapture relaxed;
    void* data = nullptr;
    const cudaError_t error = cudaHostAlloc(&data, size, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      Fail("allocate", absl::StrCat("no ", size, " bytes of pinned memory"),
           absl::StatusCode::kResourceExhausted);
    }
    Check("allocate", error);
    return data;
  }

  void Free(void* data, size_t bytes, const std::vector<Stream>& users) {
    if (CaptureLog* capture = CurrentCapture();
        capture != nullptr && !users.empty()) {
      capture->pinned.push_back({data, bytes});
      return;
    }
    Pending pending{data, SizeClass(bytes), {}};
    for (const Stream& user : users) {
      const DeviceScope scope(user.device().index());
      cudaEvent_t event = nullptr;
      Check("free", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      Check("free", cudaEventRecord(event, NativeStream(user)));
      pending.events.push_back(event);
    }
    MutexLock lock(mutex_);
    pending_.push_back(std::move(pending));
  }

 private:
  struct Pending {
    void* data;
    size_t size;
    std::vector<cudaEvent_t> events;
  };

  static size_t SizeClass(size_t bytes) {
    return std::bit_ceil(bytes < 512 ? 512 : bytes);
  }

  void CollectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (CurrentCapture() != nullptr) return;
    std::erase_if(pending_,
                  [this](const Pending& pending)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                        for (cudaEvent_t event : pending.events) {
                          if (cudaEventQuery(event) == cudaErrorNotReady)
                            return false;
                        }
                        for (cudaEvent_t event : pending.events)
                          cudaEventDestroy(event);
                        free_[pending.size].push_back(pending.data);
                        return true;
                      });
  }

  Mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

PinnedPool& Pool() {
  static auto* const pool = new PinnedPool;  // tensors may outlive main
  return *pool;
}

}  // namespace

void* AllocatePinned(size_t bytes) { return Pool().Allocate(bytes); }

void FreePinned(void* data, size_t bytes, const std::vector<Stream>& users) {
  const absl::Status status =
      CatchErrors([&] { Pool().Free(data, bytes, users); });
  if (!status.ok()) LogError(status.ToString());
}

std::shared_ptr<void> Pin(void* data, size_t bytes) {
  const DeviceScope scope(DeviceWithContext());
  const RelaxedCapture relaxed;
  const cudaError_t error =
      cudaHostRegister(data, bytes, cudaHostRegisterPortable);
  if (error != cudaSuccess) {
    cudaGetLastError();
    Fail("pin",
         absl::StrCat(bytes,
                      " bytes are not pinned: ", cudaGetErrorString(error)),
         absl::StatusCode::kFailedPrecondition);
  }
  return {data, [](void* pinned) {
            const RelaxedCapture unpinning;
            // At exit CUDA may be gone already.
            if (cudaHostUnregister(pinned) != cudaSuccess) cudaGetLastError();
          }};
}

}  // namespace baton::cuda
