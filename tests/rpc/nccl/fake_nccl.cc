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

// What is between the two ends of a line: 0 receives, 1 sends.
struct FakeFabric::Wire {
  struct End {
    bool joined = false;
    int gpu = 0;
    std::vector<Tensor> posted;
    size_t given = 0;
  };
  Mutex mutex;
  End ends[2] ABSL_GUARDED_BY(mutex);
  bool cut ABSL_GUARDED_BY(mutex) = false;
  uint64_t ended ABSL_GUARDED_BY(mutex) = 0;

  absl::Status Move(FakeFabric& fabric) {
    while (fabric.hanging)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MutexLock lock(mutex);
    if (fabric.failing) return absl::UnavailableError("NCCL: it fails");
    if (cut) return absl::UnavailableError("NCCL: the other end is gone");
    if (!fabric.busy) {
      GiveLocked(fabric, true);
      GiveLocked(fabric, false);
    }
    while (!fabric.stuck && ended < ends[0].given && ended < ends[1].given) {
      const Tensor from = std::move(ends[1].posted[ended]);
      const Tensor to = std::move(ends[0].posted[ended]);
      ++ended;
      --fabric.sending_[ends[1].gpu];
      if (from.nbytes() != to.nbytes())
        return absl::UnavailableError("NCCL: the sizes differ");
      std::memcpy(to.raw_data(), from.raw_data(), to.nbytes());
      if (fabric.broken) static_cast<char*>(to.raw_data())[0] ^= 1;
    }
    return absl::OkStatus();
  }
  void GiveLocked(FakeFabric& fabric, bool sends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    End& end = ends[sends];
    while (end.given < end.posted.size()) {
      const bool first = end.given == 0;
      if (first && ends[!sends].posted.empty()) return;
      if (first && fabric.sending_[end.gpu] > 0) ++fabric.early_openings;
      if (sends) {
        ++fabric.sending_[end.gpu];
      } else {
        if (!first && ends[1].given <= end.given) ++fabric.early_receives;
        const Tensor& target = end.posted[end.given];
        std::memset(target.raw_data(), 0xff, target.nbytes());
      }
      ++end.given;
    }
  }
};

class FakeFabric::Line final : public cuda::NcclLine {
 public:
  Line(std::shared_ptr<FakeFabric> fabric, std::shared_ptr<Wire> wire,
       bool sends, int gpu)
      : fabric_(std::move(fabric)), wire_(std::move(wire)), sends_(sends) {
    ++fabric_->lines;
    if (fabric_->sending_[gpu] > 0) ++fabric_->early_openings;
    MutexLock lock(wire_->mutex);
    wire_->ends[sends].joined = true;
    wire_->ends[sends].gpu = gpu;
  }
  ~Line() override { Abort(); }

  absl::StatusOr<bool> IsOpen() override {
    if (aborted_) return absl::CancelledError("aborted");
    RETURN_IF_ERROR(wire_->Move(*fabric_));
    MutexLock lock(wire_->mutex);
    return !fabric_->closed && wire_->ends[0].joined && wire_->ends[1].joined;
  }
  absl::Status Post(const Tensor& tensor) override {
    if (aborted_ || closed_) return absl::CancelledError("aborted");
    {
      MutexLock lock(wire_->mutex);
      wire_->ends[sends_].posted.push_back(tensor);
    }
    ++fabric_->posts;
    return wire_->Move(*fabric_);
  }
  absl::StatusOr<bool> HaveBeenGiven(uint64_t posts) override {
    ++fabric_->questions;
    if (aborted_ || closed_) return absl::CancelledError("aborted");
    const absl::Status moved = wire_->Move(*fabric_);
    MutexLock lock(wire_->mutex);
    if (wire_->ends[sends_].given >= posts) return true;
    RETURN_IF_ERROR(moved);
    return false;
  }
  absl::StatusOr<bool> HaveEnded(uint64_t posts) override {
    ++fabric_->questions;
    if (aborted_) return absl::CancelledError("aborted");
    const absl::Status moved = wire_->Move(*fabric_);
    MutexLock lock(wire_->mutex);
    if (wire_->ended >= posts) return true;
    RETURN_IF_ERROR(moved);
    return false;
  }
  void Close() override { closed_ = true; }
  void Abort() override {
    if (aborted_.exchange(true)) return;
    while (fabric_->clinging)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MutexLock lock(wire_->mutex);
    if (!std::exchange(wire_->cut, true)) {
      fabric_->sending_[wire_->ends[1].gpu] -=
          static_cast<int>(wire_->ends[1].given - wire_->ended);
    }
    for (auto& end : wire_->ends) {
      end.posted.clear();
      end.given = 0;
    }
    --fabric_->lines;
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::shared_ptr<Wire> wire_;
  const bool sends_;
  std::atomic<bool> aborted_{false}, closed_{false};
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
  return std::make_shared<FakeFabric::Line>(fabric_, std::move(wire), sends,
                                            own_);
}

absl::StatusOr<Poller::Question> FakeNccl::WhenWritten(const Tensor&) {
  MutexLock lock(fabric_->mutex_);
  return Poller::Question(
      [written = fabric_->written_] { return written->load(); });
}

absl::StatusOr<Tensor> FakeNccl::Make(const TensorSpec& spec) {
  if (const auto once = std::exchange(making, nullptr)) once();
  auto bytes = std::make_shared<std::vector<char>>(spec.bytes);
  return DenseView(Storage::Wrap(bytes->data(), bytes->size(),
                                 Device::Cuda(own_), [bytes] {}),
                   spec);
}

}  // namespace baton::rpc
