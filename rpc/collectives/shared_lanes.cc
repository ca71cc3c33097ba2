// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/shared_lanes.h"

#include <unistd.h>

#include <atomic>
#include <new>
#include <utility>

#include "core/status.h"
#include "rpc/channels/machine.h"

namespace baton::rpc {
namespace {

constexpr size_t kLine = 64;

// Chunks so far. Each is written by one side alone, on a line of its own.
struct Positions {
  alignas(kLine) std::atomic<uint64_t> pushed;
  alignas(kLine) std::atomic<uint64_t> popped;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct alignas(kLine) SlotHead {
  uint64_t tag;
  uint64_t bytes;
};

size_t LaneBytes(LaneSize size) {
  return sizeof(Positions) +
         static_cast<size_t>(size.slots) * (sizeof(SlotHead) + size.slot_bytes);
}

}  // namespace

// One lane as either end sees it.
class SharedLanes::Lane {
 public:
  Lane(const SharedLanes& lanes, int seat)
      : size_(lanes.size_),
        data_(lanes.memory_.data() +
              static_cast<size_t>(seat) * LaneBytes(lanes.size_)) {}

  Positions& positions() const {
    return *std::launder(reinterpret_cast<Positions*>(data_));
  }
  SlotHead& head(uint64_t chunk) const {
    return *std::launder(reinterpret_cast<SlotHead*>(
        data_ + sizeof(Positions) + SlotOf(chunk) * sizeof(SlotHead)));
  }
  std::byte* slot(uint64_t chunk) const {
    return data_ + sizeof(Positions) + slots() * sizeof(SlotHead) +
           SlotOf(chunk) * size_.slot_bytes;
  }
  size_t slots() const { return static_cast<size_t>(size_.slots); }
  size_t slot_bytes() const { return size_.slot_bytes; }

 private:
  size_t SlotOf(uint64_t chunk) const { return chunk % slots(); }

  const LaneSize size_;
  std::byte* const data_;
};

class SharedLanes::SharedInlet final : public Inlet {
 public:
  SharedInlet(std::shared_ptr<SharedLanes> lanes, int seat,
              std::shared_ptr<Bell> bell)
      : lanes_(std::move(lanes)),
        lane_(*lanes_, seat),
        bell_(std::move(bell)) {}

  absl::StatusOr<Chunk> Front() override {
    const uint64_t pushed = lane_.positions().pushed.load();
    if (pushed == popped_) return Chunk{};
    // Copied, so that it is the same when it is used.
    const SlotHead head = lane_.head(popped_);
    if (pushed - popped_ > lane_.slots() || head.bytes > lane_.slot_bytes())
      return absl::DataLossError("a shared lane is not as its sender left it");
    return Chunk{head.tag, head.bytes, lane_.slot(popped_)};
  }
  void Pop() override {
    lane_.positions().popped.store(++popped_);
    bell_->Ring();
  }

 private:
  const std::shared_ptr<SharedLanes> lanes_;
  const Lane lane_;
  const std::shared_ptr<Bell> bell_;
  uint64_t popped_ = 0;
};

class SharedLanes::SharedOutlet final : public Outlet {
 public:
  SharedOutlet(std::shared_ptr<SharedLanes> lanes, int seat,
               std::shared_ptr<Bell> bell)
      : lanes_(std::move(lanes)),
        lane_(*lanes_, seat),
        bell_(std::move(bell)) {}

  absl::StatusOr<std::byte*> Slot() override {
    const uint64_t out = pushed_ - lane_.positions().popped.load();
    if (out > lane_.slots())
      return absl::DataLossError("a shared lane is not as its reader left it");
    return out == lane_.slots() ? nullptr : lane_.slot(pushed_);
  }
  void Push(uint64_t tag, size_t bytes) override {
    lane_.head(pushed_) = {tag, bytes};
    lane_.positions().pushed.store(++pushed_);
    bell_->Ring();
  }

 private:
  const std::shared_ptr<SharedLanes> lanes_;
  const Lane lane_;
  const std::shared_ptr<Bell> bell_;
  uint64_t pushed_ = 0;
};

absl::StatusOr<std::shared_ptr<SharedLanes>> SharedLanes::Make(int seats,
                                                               LaneSize size) {
  ASSIGN_OR_RETURN(Segment memory, Segment::Create(static_cast<size_t>(seats) *
                                                   LaneBytes(size)));
  for (int seat = 0; seat < seats; ++seat)
    new (memory.data() + static_cast<size_t>(seat) * LaneBytes(size)) Positions;
  return std::shared_ptr<SharedLanes>(new SharedLanes(std::move(memory), size));
}

absl::StatusOr<std::shared_ptr<SharedLanes>> SharedLanes::Open(
    const SharedLanesHandle& handle, int seats, LaneSize size) {
  ASSIGN_OR_RETURN(const std::string machine, BootId());
  if (handle.machine != machine)
    return absl::UnavailableError("the workers are on two machines");
  ASSIGN_OR_RETURN(Fd fd,
                   OpenFdOf(handle.process, handle.lanes, handle.lanes_file));
  ASSIGN_OR_RETURN(Segment memory,
                   Segment::Open(std::move(fd),
                                 static_cast<size_t>(seats) * LaneBytes(size)));
  return std::shared_ptr<SharedLanes>(new SharedLanes(std::move(memory), size));
}

absl::StatusOr<std::shared_ptr<Bell>> SharedLanes::OpenBell(
    const SharedLanesHandle& handle) {
  ASSIGN_OR_RETURN(Fd fd,
                   OpenFdOf(handle.process, handle.bell, handle.bell_file));
  return Bell::Open(std::move(fd));
}

absl::StatusOr<SharedLanesHandle> SharedLanes::HandleFor(
    const Doorbell& bell) const {
  SharedLanesHandle handle;
  handle.process = getpid();
  handle.lanes = memory_.fd().get();
  handle.bell = bell.fd().get();
  ASSIGN_OR_RETURN(handle.lanes_file, FileOf(memory_.fd()));
  ASSIGN_OR_RETURN(handle.bell_file, FileOf(bell.fd()));
  ASSIGN_OR_RETURN(handle.machine, BootId());
  return handle;
}

std::unique_ptr<Inlet> SharedLanes::In(int seat, std::shared_ptr<Bell> bell) {
  return std::make_unique<SharedInlet>(shared_from_this(), seat,
                                       std::move(bell));
}

std::unique_ptr<Outlet> SharedLanes::Out(int seat, std::shared_ptr<Bell> bell) {
  return std::make_unique<SharedOutlet>(shared_from_this(), seat,
                                        std::move(bell));
}

}  // namespace baton::rpc
