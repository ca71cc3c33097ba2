// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/launch.h"
#include "core/cuda/nccl/communicator.h"
#include "core/cuda/nccl/library.h"
#include "core/cuda/nccl_group.h"
#include "core/cuda/owned_event.h"
#include "core/cuda/release.h"
#include "core/cuda/status.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "nccl_group";

ncclDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
    case DType::kBool:
      return ncclUint8;
  }
  Fail(kOp, absl::StrCat("NCCL has no ", Name(dtype)));
}

ncclRedOp_t OpOf(NcclReduction reduction, DType dtype) {
  switch (reduction) {
    case NcclReduction::kSum:
      return dtype == DType::kBool ? ncclMax : ncclSum;
    case NcclReduction::kMean:
      return ncclAvg;
    case NcclReduction::kMin:
      return ncclMin;
    case NcclReduction::kMax:
      return ncclMax;
    case NcclReduction::kProduct:
      return dtype == DType::kBool ? ncclMin : ncclProd;
  }
  Fail(kOp, "no such reduction");
}

const void* DataOf(const Tensor& tensor) {
  return tensor.defined() ? tensor.raw_data() : nullptr;
}

// Events that queries no longer use. Thread-safe.
class IdleEvents {
 public:
  explicit IdleEvents(int device) : device_(device) {}

  std::shared_ptr<void> Take() {
    {
      MutexLock lock(mutex_);
      if (!idle_.empty()) {
        std::shared_ptr<void> event = std::move(idle_.back());
        idle_.pop_back();
        return event;
      }
    }
    const DeviceScope scope(device_);
    cudaEvent_t event = nullptr;
    Check(kOp, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return OwnEvent(event, device_);
  }
  void Give(std::shared_ptr<void> event) {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(event));
  }

 private:
  const int device_;
  Mutex mutex_;
  std::vector<std::shared_ptr<void>> idle_ ABSL_GUARDED_BY(mutex_);
};

class Group final : public NcclGroup {
 public:
  Group(const Nccl& nccl, int device, ncclComm_t comm)
      : nccl_(nccl),
        device_(device),
        stream_(Stream::ForCollectives(Device::Cuda(device))),
        communicator_(std::make_shared<Communicator>(nccl, device, comm)),
        events_(std::make_shared<IdleEvents>(device)) {}
  ~Group() override {
    Abort();
    communicator_->AwaitAbort();
  }

  const Stream& stream() const override { return stream_; }

  absl::Status AllReduce(const Tensor& out, const Tensor& in,
                         NcclReduction reduction) override {
    return Give("all_reduce", out, in, [&](auto comm, auto stream) {
      return nccl_.all_reduce(DataOf(in), out.raw_data(), CountOf(in),
                              TypeOf(in.dtype()), OpOf(reduction, in.dtype()),
                              comm, stream);
    });
  }
  absl::Status Broadcast(const Tensor& out, const Tensor& in,
                         int root) override {
    return Give("broadcast", out, in, [&](auto comm, auto stream) {
      return nccl_.broadcast(DataOf(in), out.raw_data(), CountOf(out),
                             TypeOf(out.dtype()), root, comm, stream);
    });
  }
  absl::Status AllReduceMany(const std::vector<Tensor>& tensors,
                             NcclReduction reduction) override {
    return GiveMany(
        "all_reduce", tensors, [&](const Tensor& each, auto comm, auto stream) {
          return nccl_.all_reduce(DataOf(each), each.raw_data(), CountOf(each),
                                  TypeOf(each.dtype()),
                                  OpOf(reduction, each.dtype()), comm, stream);
        });
  }
  absl::Status BroadcastMany(const std::vector<Tensor>& tensors,
                             int root) override {
    return GiveMany(
        "broadcast", tensors, [&](const Tensor& each, auto comm, auto stream) {
          return nccl_.broadcast(DataOf(each), each.raw_data(), CountOf(each),
                                 TypeOf(each.dtype()), root, comm, stream);
        });
  }
  absl::Status Reduce(const Tensor& out, const Tensor& in,
                      NcclReduction reduction, int root) override {
    return Give("reduce", out, in, [&](auto comm, auto stream) {
      return nccl_.reduce(DataOf(in), const_cast<void*>(DataOf(out)),
                          CountOf(in), TypeOf(in.dtype()),
                          OpOf(reduction, in.dtype()), root, comm, stream);
    });
  }
  absl::Status AllGather(const Tensor& out, const Tensor& in) override {
    return Give("all_gather", out, in, [&](auto comm, auto stream) {
      return nccl_.all_gather(DataOf(in), out.raw_data(), CountOf(in),
                              TypeOf(in.dtype()), comm, stream);
    });
  }
  absl::Status ReduceScatter(const Tensor& out, const Tensor& in,
                             NcclReduction reduction) override {
    return Give("reduce_scatter", out, in, [&](auto comm, auto stream) {
      return nccl_.reduce_scatter(DataOf(in), out.raw_data(), CountOf(out),
                                  TypeOf(in.dtype()),
                                  OpOf(reduction, in.dtype()), comm, stream);
    });
  }
  absl::Status Exchange(const Tensor& out, const Tensor& in, int64_t count,
                        const std::vector<int>& to,
                        const std::vector<int>& from) override;

  Query WhenEnded(const Stream& stream) override;
  void Abort() override { Communicator::Abort(communicator_); }

 private:
  static size_t CountOf(const Tensor& tensor) {
    return static_cast<size_t>(tensor.numel());
  }
  // fn(ncclComm_t, cudaStream_t) returns an ncclResult_t.
  template <typename Fn>
  absl::Status Give(const char* what, const Tensor& out, const Tensor& in,
                    const Fn& fn) {
    return Give(what, {&out}, {&in}, fn);
  }
  template <typename Fn>
  absl::Status Give(const char* what, Launch::Operands written,
                    Launch::Operands read, const Fn& fn);
  // Calls fn(tensor, ncclComm_t, cudaStream_t) for each tensor, in place, as a
  // group.
  template <typename Fn>
  absl::Status GiveMany(const char* what, const std::vector<Tensor>& tensors,
                        const Fn& fn);
  // Calls fn(note), which passes the result of each of its calls to note; the
  // calls are one launch. Returns the first error.
  template <typename Fn>
  ncclResult_t AsGroup(const Fn& fn) const;
  void NoteRecording();

  const Nccl& nccl_;
  const int device_;
  const Stream stream_;
  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<IdleEvents> events_;
  int noted_ = 0;  // the pool of the last capture that used this
};

template <typename Fn>
absl::Status Group::Give(const char* what, Launch::Operands written,
                         Launch::Operands read, const Fn& fn) {
  return CatchErrors([&] {
    const StreamScope scope(stream_);
    const Launch launch(what, written, read);
    NoteRecording();
    return communicator_->Call(
        what, [&](ncclComm_t comm) { return fn(comm, launch.stream()); });
  });
}

template <typename Fn>
ncclResult_t Group::AsGroup(const Fn& fn) const {
  ncclResult_t first = nccl_.group_start();
  if (first != ncclSuccess) return first;
  const auto note = [&](ncclResult_t result) {
    if (first == ncclSuccess) first = result;
  };
  fn(note);
  note(nccl_.group_end());
  return first;
}

template <typename Fn>
absl::Status Group::GiveMany(const char* what,
                             const std::vector<Tensor>& tensors, const Fn& fn) {
  std::vector<const Tensor*> operands;
  for (const Tensor& each : tensors) operands.push_back(&each);
  return Give(what, operands, {}, [&](auto comm, auto stream) {
    return AsGroup([&](const auto& note) {
      for (const Tensor& each : tensors) note(fn(each, comm, stream));
    });
  });
}

// NCCL keeps what a graph uses as long as the graph exists.
void Group::NoteRecording() {
  CaptureLog* const capture = CurrentCapture();
  if (capture == nullptr || capture->pool == noted_) return;
  noted_ = capture->pool;
  capture->after_replay.emplace_back([kept = communicator_->recorded()] {});
}

absl::Status Group::Exchange(const Tensor& out, const Tensor& in, int64_t count,
                             const std::vector<int>& to,
                             const std::vector<int>& from) {
  const DType dtype = (in.defined() ? in : out).dtype();
  const auto number = static_cast<size_t>(count);
  const size_t bytes = number * SizeOf(dtype);
  const auto* source = static_cast<const std::byte*>(DataOf(in));
  auto* target = static_cast<std::byte*>(const_cast<void*>(DataOf(out)));
  return Give("exchange", out, in, [&](auto comm, auto stream) {
    return AsGroup([&](const auto& note) {
      for (size_t i = 0; i < to.size(); ++i)
        note(nccl_.send(source + i * bytes, number, TypeOf(dtype), to[i], comm,
                        stream));
      for (size_t i = 0; i < from.size(); ++i)
        note(nccl_.recv(target + i * bytes, number, TypeOf(dtype), from[i],
                        comm, stream));
    });
  });
}

NcclGroup::Query Group::WhenEnded(const Stream& stream) {
  Require(CurrentCapture() == nullptr, kOp,
          "nothing can be waited for within a recording");
  std::shared_ptr<void> event = events_->Take();
  {
    const DeviceScope scope(device_);
    Check(kOp, cudaEventRecord(static_cast<cudaEvent_t>(event.get()),
                               NativeStream(stream)));
  }
  return
      [event = std::move(event), events = events_, communicator = communicator_,
       device = device_]() mutable -> absl::StatusOr<bool> {
        cudaError_t error = cudaErrorUnknown;
        OnDevice(device, [&] {
          error = cudaEventQuery(static_cast<cudaEvent_t>(event.get()));
          if (error != cudaSuccess) cudaGetLastError();
        });
        if (error == cudaErrorNotReady) {
          RETURN_IF_ERROR(communicator->State());
          return false;
        }
        if (error != cudaSuccess) {
          return absl::InternalError(absl::StrCat(
              "cuda:", device, " has failed: ", cudaGetErrorString(error)));
        }
        // Work that an abort has ended was not completed.
        RETURN_IF_ERROR(communicator->State());
        events->Give(std::exchange(event, nullptr));
        return true;
      };
}

absl::StatusOr<std::shared_ptr<NcclGroup>> Join(const Nccl& nccl,
                                                const ncclUniqueId& id,
                                                int rank, int size,
                                                int device) {
  const DeviceScope scope(device);
  // With a blocking communicator each call enqueues its work on the caller's
  // thread, which may be capturing; others use a thread for each call.
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t comm = nullptr;
  RETURN_IF_ERROR(nccl.StatusOf(
      "joining", nccl.init(&comm, size, id, rank, &config), nullptr));
  return std::make_shared<Group>(nccl, device, comm);
}

}  // namespace

Future<std::shared_ptr<NcclGroup>> JoinNcclGroup(const std::string& id,
                                                 int rank, int size,
                                                 int device) {
  const Promise<std::shared_ptr<NcclGroup>> promise;
  ncclUniqueId unique{};
  absl::Status status = OpenNccl().status();
  if (status.ok() && id.size() != sizeof(unique.internal)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("an id of NCCL of ", id.size(), " bytes"));
  }
  if (!status.ok()) {
    promise.Set(status);
    return promise.future();
  }
  std::memcpy(unique.internal, id.data(), id.size());
  std::thread([promise, unique, rank, size, device] {
    promise.Set(CatchErrors(
        [&] { return Join(*OpenNccl(), unique, rank, size, device); }));
  }).detach();
  return promise.future();
}

}  // namespace baton::cuda
