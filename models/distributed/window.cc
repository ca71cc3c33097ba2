// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/window.h"

#include <sys/random.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/ipc.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "rpc/channels/segment.h"

namespace baton::dist {
namespace {

// The maker's proof, and the opener's answer to it.
enum FrontWord { kProof = 0, kAnswer = 1 };

absl::StatusOr<uint64_t> NewProof() {
  uint64_t proof = 0;
  if (getrandom(&proof, sizeof(proof), 0) != sizeof(proof))
    return absl::UnavailableError("this machine gives no random bytes");
  return proof;
}

}  // namespace

bool WindowHandle::is_own() const { return process == getpid(); }

bool WindowHandle::IsOn(Device device) const {
  return on_gpu() && device.is_cuda() && gpu == cuda::UuidOf(device.index());
}

absl::StatusOr<Window> Window::Make(Device device, size_t bytes) {
  Window window;
  ASSIGN_OR_RETURN(window.handle_.machine, rpc::BootId());
  ASSIGN_OR_RETURN(window.handle_.proof, NewProof());
  window.handle_.process = getpid();
  window.handle_.bytes = bytes;
  RETURN_IF_ERROR(CatchErrors([&]() -> absl::Status {
    RETURN_IF_ERROR(device.is_cuda() ? window.MakeOnGpu(device, bytes)
                                     : window.MakeOnCpu(bytes));
    window.SetWord(kProof, window.handle_.proof);
    CurrentStream(device).Synchronize();
    return absl::OkStatus();
  }));
  return window;
}

absl::Status Window::MakeOnCpu(size_t bytes) {
  ASSIGN_OR_RETURN(segment_, rpc::Segment::Create(bytes));
  ASSIGN_OR_RETURN(handle_.file, rpc::FileOf(segment_->fd()));
  handle_.descriptor = segment_->fd().get();
  storage_ =
      Storage::Wrap(segment_->data(), segment_->bytes(), Device::Cpu(), [] {});
  return absl::OkStatus();
}

absl::Status Window::MakeOnGpu(Device device, size_t bytes) {
  const Tensor memory = Tensor::Zeros(Shape({static_cast<int64_t>(bytes)}),
                                      {.dtype = DType::kU8, .device = device});
  const auto place = cuda::PlaceOf(memory);
  if (!place.has_value())
    return absl::UnavailableError("this memory of a GPU cannot be shared");
  storage_ = memory.storage();
  handle_.segment = cuda::ShareSegment(place->segment, device.index());
  shared_ = place->segment;
  handle_.offset = place->offset;
  handle_.gpu = cuda::UuidOf(device.index());
  return absl::OkStatus();
}

absl::StatusOr<Window> Window::Open(const WindowHandle& handle, Device device) {
  ASSIGN_OR_RETURN(const std::string machine, rpc::BootId());
  if (handle.machine != machine)
    return absl::UnavailableError("the workers are on two machines");
  if (handle.on_gpu() != device.is_cuda())
    return absl::UnavailableError("one stage is on a GPU, the other is not");
  Window window;
  window.handle_ = handle;
  RETURN_IF_ERROR(CatchErrors([&]() -> absl::Status {
    RETURN_IF_ERROR(handle.on_gpu() ? window.OpenOnGpu(device)
                                    : window.OpenOnCpu());
    if (window.Word(kProof) != handle.proof)
      return absl::UnavailableError("the window does not show what is in it");
    window.SetWord(kAnswer, ~handle.proof);
    CurrentStream(device).Synchronize();
    return absl::OkStatus();
  }));
  return window;
}

absl::Status Window::OpenOnCpu() {
  ASSIGN_OR_RETURN(rpc::Fd fd, rpc::OpenFdOf(handle_.process,
                                             handle_.descriptor, handle_.file));
  ASSIGN_OR_RETURN(segment_, rpc::Segment::Open(std::move(fd), handle_.bytes));
  storage_ =
      Storage::Wrap(segment_->data(), segment_->bytes(), Device::Cpu(), [] {});
  return absl::OkStatus();
}

absl::Status Window::OpenOnGpu(Device device) {
  if (handle_.is_own())
    return absl::UnavailableError("a process does not open its own GPU memory");
  opened_ = cuda::OpenSegment(handle_.segment, device.index());
  storage_ = Storage::Wrap(static_cast<char*>(opened_.get()) + handle_.offset,
                           handle_.bytes, device, [] {});
  return absl::OkStatus();
}

absl::Status Window::CheckOpened() const {
  uint64_t answer = 0;
  RETURN_IF_ERROR(CatchErrors([&] { answer = Word(kAnswer); }));
  if (answer == ~handle_.proof) return absl::OkStatus();
  return absl::UnavailableError("what the other worker writes does not arrive");
}

Window::~Window() {
  if (storage_ == nullptr) return;
  const Device device = storage_->device();
  if (!device.is_cuda()) return;
  CatchErrors([&] {
    // Closing a mapping that a stream still uses would fail its kernels.
    Synchronize(device);
    if (shared_ != nullptr) cuda::UnshareSegment(shared_, device.index());
  }).IgnoreError();
}

uint64_t Window::Word(int which) const {
  const Tensor word =
      Tensor::FromStorage(storage_, DType::kI64, {1}, {1}, which);
  return static_cast<uint64_t>(word.ToVector<int64_t>().front());
}

void Window::SetWord(int which, uint64_t value) const {
  Tensor::FromStorage(storage_, DType::kI64, {1}, {1}, which)
      .CopyFrom(Tensor::From<int64_t>({static_cast<int64_t>(value)}));
}

}  // namespace baton::dist
