// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/cuda_ipc/fake_gpu.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

std::shared_ptr<Storage> FakeGpu::NewBlock(int gpu, size_t offset,
                                           size_t bytes) {
  auto segment = std::make_shared<Bytes>(kSegmentBytes);
  {
    MutexLock lock(mutex_);
    segments_[segment->data()] = segment;
  }
  return Storage::Wrap(segment->data() + offset, bytes, Device::Cuda(gpu),
                       [segment] {});
}

Tensor FakeGpu::Numbers(int64_t count, int gpu, size_t offset) {
  const TensorSpec spec{.shape = Shape({count}),
                        .bytes = static_cast<uint64_t>(count) * sizeof(float)};
  const Tensor made = DenseView(NewBlock(gpu, offset, spec.bytes), spec);
  auto* values = static_cast<float*>(made.raw_data());
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return made;
}

absl::StatusOr<std::string> FakeGpu::Uuid() {
  return absl::StrCat("number ", own_, " of ",
                      absl::Hex(reinterpret_cast<uintptr_t>(machine_.get())));
}

std::optional<IpcGpu::Place> FakeGpu::Find(const Tensor& tensor) {
  auto* const first = static_cast<char*>(tensor.raw_data());
  MutexLock lock(mutex_);
  for (const auto& [base, segment] : segments_) {
    const auto offset = first - segment->data();
    if (offset >= 0 && offset < static_cast<ptrdiff_t>(segment->size())) {
      return Place{tensor.device().index(), base, segment->size(),
                   static_cast<uint64_t>(offset)};
    }
  }
  return std::nullopt;
}

std::string FakeGpu::NewHandle(Kind kind, const std::shared_ptr<void>& of) {
  MutexLock lock(machine_->mutex_);
  std::string handle =
      absl::StrCat(kind == Kind::kEvent ? "event " : "segment ",
                   absl::Hex(reinterpret_cast<uintptr_t>(machine_.get())), " ",
                   machine_->next_handle_++);
  machine_->by_handle_[handle] = of;
  return handle;
}

std::shared_ptr<void> FakeGpu::ByHandle(Kind kind, const std::string& handle) {
  MutexLock lock(machine_->mutex_);
  const auto found = machine_->by_handle_.find(handle);
  if (found == machine_->by_handle_.end() ||
      (handle[0] == 'e') != (kind == Kind::kEvent))
    return nullptr;
  return found->second.lock();
}

absl::StatusOr<std::string> FakeGpu::Share(const Place& place) {
  std::shared_ptr<Bytes> segment;
  {
    MutexLock lock(mutex_);
    segment = segments_[place.segment];
  }
  if (segment == nullptr) return absl::InternalError("not allocated");
  ++machine_->shared;
  return NewHandle(Kind::kSegment, segment);
}

void FakeGpu::Unshare(const Place&) {
  machine_->before_release();
  --machine_->shared;
}

absl::StatusOr<IpcGpu::Event> FakeGpu::MakeEvent(int) {
  auto event = std::make_shared<FakeMachine::Event>();
  return Event{event, NewHandle(Kind::kEvent, event)};
}

absl::Status FakeGpu::Record(const Event& event, const Tensor&) {
  static_cast<FakeMachine::Event*>(event.event.get())->recorded = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<void>> FakeGpu::OpenSegment(
    const std::string& handle) {
  const auto segment =
      std::static_pointer_cast<Bytes>(ByHandle(Kind::kSegment, handle));
  if (segment == nullptr) return absl::InternalError("an invalid handle");
  ++machine_->opened;
  return std::shared_ptr<void>(segment->data(),
                               [segment, machine = machine_](void*) {
                                 machine->before_release();
                                 --machine->opened;
                               });
}

absl::StatusOr<std::shared_ptr<void>> FakeGpu::OpenEvent(
    const std::string& handle) {
  auto event = ByHandle(Kind::kEvent, handle);
  if (event == nullptr) return absl::InternalError("an invalid handle");
  return event;
}

bool FakeGpu::HasEnded(const std::shared_ptr<void>& event) {
  return !machine_->busy &&
         static_cast<FakeMachine::Event*>(event.get())->recorded;
}

absl::StatusOr<Tensor> FakeGpu::Make(const TensorSpec& spec) {
  return DenseView(NewBlock(own_, 0, spec.bytes), spec);
}

absl::StatusOr<Poller::Query> FakeGpu::Copy(const Tensor& target,
                                            const void* source) {
  std::memcpy(target.raw_data(), source, target.nbytes());
  if (machine_->broken) static_cast<char*>(target.raw_data())[0] ^= 1;
  return [] { return true; };
}

absl::StatusOr<Tensor> FakeGpu::Upload(const Tensor& host, int gpu) {
  proof_ = host;
  const TensorSpec spec = SpecOf(host);
  const Tensor there = DenseView(NewBlock(gpu, 0, spec.bytes), spec);
  std::memcpy(there.raw_data(), host.raw_data(), host.nbytes());
  return there;
}

absl::StatusOr<Tensor> FakeGpu::Download(const Tensor& tensor) {
  const Tensor host = Tensor::Zeros(tensor.shape(), {.dtype = tensor.dtype()});
  std::memcpy(host.raw_data(), tensor.raw_data(), host.nbytes());
  return host;
}

}  // namespace baton::rpc
