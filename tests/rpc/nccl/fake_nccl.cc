// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/nccl/fake_nccl.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"

namespace baton::rpc {

// What is between the two ends of a line.
struct FakeFabric::Wire {
  Mutex mutex;
  bool joined[2] ABSL_GUARDED_BY(mutex) = {};
  bool cut ABSL_GUARDED_BY(mutex) = false;
  std::vector<Tensor> posted[2] ABSL_GUARDED_BY(mutex);
  uint64_t ended ABSL_GUARDED_BY(mutex) = 0;

  absl::Status Move(const FakeFabric& fabric) {
    MutexLock lock(mutex);
    if (fabric.failing) return absl::UnavailableError("NCCL: it fails");
    if (cut) return absl::UnavailableError("NCCL: the other end is gone");
    while (!fabric.stuck && ended < posted[0].size() &&
           ended < posted[1].size()) {
      const Tensor from = std::move(posted[1][ended]);
      const Tensor to = std::move(posted[0][ended]);
      ++ended;
      if (from.nbytes() != to.nbytes())
        return absl::UnavailableError("NCCL: the sizes differ");
      std::memcpy(to.raw_data(), from.raw_data(), to.nbytes());
      if (fabric.broken) static_cast<char*>(to.raw_data())[0] ^= 1;
    }
    return absl::OkStatus();
  }
};

class FakeFabric::Line final : public cuda::NcclLine {
 public:
  Line(std::shared_ptr<FakeFabric> fabric, std::shared_ptr<Wire> wire,
       bool sends)
      : fabric_(std::move(fabric)), wire_(std::move(wire)), sends_(sends) {
    ++fabric_->lines;
    MutexLock lock(wire_->mutex);
    wire_->joined[sends] = true;
  }
  ~Line() override { Abort(); }

  absl::StatusOr<bool> IsOpen() override {
    if (aborted_) return absl::CancelledError("aborted");
    RETURN_IF_ERROR(wire_->Move(*fabric_));
    MutexLock lock(wire_->mutex);
    return !fabric_->closed && wire_->joined[0] && wire_->joined[1];
  }
  absl::Status Post(const Tensor& tensor) override {
    if (aborted_) return absl::CancelledError("aborted");
    {
      MutexLock lock(wire_->mutex);
      wire_->posted[sends_].push_back(tensor);
    }
    ++fabric_->posts;
    return wire_->Move(*fabric_);
  }
  absl::StatusOr<bool> HaveEnded(uint64_t posts) override {
    if (aborted_) return absl::CancelledError("aborted");
    const absl::Status moved = wire_->Move(*fabric_);
    MutexLock lock(wire_->mutex);
    if (wire_->ended >= posts) return true;
    RETURN_IF_ERROR(moved);
    return false;
  }
  void Abort() override {
    if (aborted_.exchange(true)) return;
    while (fabric_->clinging)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MutexLock lock(wire_->mutex);
    wire_->cut = true;
    for (auto& posted : wire_->posted) posted.clear();
    --fabric_->lines;
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::shared_ptr<Wire> wire_;
  const bool sends_;
  std::atomic<bool> aborted_{false};
};

class FakeFabric::Arrival final : public cuda::Arrival {
 public:
  Arrival(std::shared_ptr<FakeFabric> fabric, Tensor target)
      : fabric_(std::move(fabric)), target_(std::move(target)) {
    ++fabric_->waiting;
  }
  ~Arrival() override { Came(); }
  void Came() override {
    if (!open_.exchange(true)) --fabric_->waiting;
  }
  void Lost() override {
    if (open_) return;
    std::memset(target_.raw_data(), 0xff, target_.nbytes());
    ++fabric_->lost;
    Came();
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const Tensor target_;
  std::atomic<bool> open_{false};
};

std::shared_ptr<std::atomic<bool>> FakeFabric::StartWriting() {
  MutexLock lock(mutex_);
  written_ = std::make_shared<std::atomic<bool>>(false);
  return written_;
}

void FakeFabric::StopWriting() {
  MutexLock lock(mutex_);
  written_ = std::make_shared<std::atomic<bool>>(true);
}

absl::StatusOr<std::string> FakeNccl::NewId() {
  if (fabric_->refusing) return absl::UnavailableError("NCCL: no interface");
  MutexLock lock(fabric_->mutex_);
  const std::string id = absl::StrCat("line ", fabric_->next_id_++);
  fabric_->wires_[id] = std::make_shared<FakeFabric::Wire>();
  return id;
}

absl::StatusOr<std::shared_ptr<cuda::NcclLine>> FakeNccl::Join(
    const std::string& id, bool sends) {
  std::shared_ptr<FakeFabric::Wire> wire;
  {
    MutexLock lock(fabric_->mutex_);
    const auto found = fabric_->wires_.find(id);
    if (found == fabric_->wires_.end())
      return absl::InvalidArgumentError("NCCL: an unknown id");
    wire = found->second;
  }
  return std::make_shared<FakeFabric::Line>(fabric_, std::move(wire), sends);
}

absl::StatusOr<Poller::Question> FakeNccl::WhenWritten(const Tensor&) {
  MutexLock lock(fabric_->mutex_);
  return Poller::Question(
      [written = fabric_->written_] { return written->load(); });
}

absl::StatusOr<NcclGpu::Coming> FakeNccl::Expect(const TensorSpec& spec) {
  auto bytes = std::make_shared<std::vector<char>>(spec.bytes);
  Coming coming;
  coming.tensor = DenseView(Storage::Wrap(bytes->data(), bytes->size(),
                                          Device::Cuda(own_), [bytes] {}),
                            spec);
  coming.arrival =
      std::make_shared<FakeFabric::Arrival>(fabric_, coming.tensor);
  return coming;
}

}  // namespace baton::rpc
