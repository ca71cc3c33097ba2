// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/shared_memory.h"
#include "rpc/wire.pb.h"

// Passing segments, the heartbeat and the ring to the peer, and mapping the
// peer's.
namespace baton::rpc {
namespace {

// The first segment proves that the channel works, and is cheap for a
// connection that never sends a large tensor.
constexpr size_t kFirstBytes = size_t{64} << 10;
// Memory that was used more recently is not returned for others, because it
// would soon be made again.
constexpr std::chrono::seconds kLeastIdle{1};

// The part of the budget is returned after the segment is unmapped, and the pin
// is dropped just before, whoever holds the result last.
std::shared_ptr<Segment> Budgeted(Segment segment,
                                  std::unique_ptr<SharedBudget::Part> part,
                                  std::shared_ptr<void> pinned = nullptr) {
  struct All {
    std::unique_ptr<SharedBudget::Part> part;
    Segment segment;
    std::shared_ptr<void> pinned;
  };
  const auto all = std::make_shared<All>(
      All{std::move(part), std::move(segment), std::move(pinned)});
  return {all, &all->segment};
}

}  // namespace

void SharedMemoryEnd::Start() {
  {
    MutexLock lock(mutex_);
    if (lost_ || std::exchange(passing_, true)) return;
    budget_member_ = budget_.made->Join([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->Post([self] { self->ReturnIdle(kLeastIdle); });
    });
  }
  Post([self = shared_from_this()] { self->PassOrTell(kFirstBytes, nullptr); });
}

absl::Status SharedMemoryEnd::Connected() {
  {
    MutexLock lock(mutex_);
    if (lost_) return absl::CancelledError("the connection has ended");
  }
  if (connection_.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(connection_, connect_());
  return absl::OkStatus();
}

void SharedMemoryEnd::PassOrTell(size_t bytes, Part part) {
  const absl::Status status = Pass(bytes, std::move(part));
  if (status.ok()) return;
  NotGrown(0, std::string(status.message()));
  // The other end may wait for a first segment.
  wire::SharedMemoryControl control;
  control.set_failed(std::string(status.message()));
  SendControl(control);
}

absl::Status SharedMemoryEnd::Pass(size_t bytes, Part part) {
  RETURN_IF_ERROR(Connected());
  ASSIGN_OR_RETURN(Segment segment, Segment::Create(bytes));
  wire::SharedMemoryControl control;
  wire::SharedMemoryControl::Passed& passed = *control.mutable_passed();
  passed.set_bytes(bytes);
  RETURN_IF_ERROR(connection_->Send(segment.fd()));
  segment.CloseFd();
  passed.set_heartbeat(PassHeartbeat());
  ASSIGN_OR_RETURN(const bool ring, PassRing());
  passed.set_ring(ring);
  {
    MutexLock lock(mutex_);
    passed.set_segment(next_segment_++);
    passed_[passed.segment()] = Budgeted(std::move(segment), std::move(part));
  }
  SendControl(control);
  return absl::OkStatus();
}

bool SharedMemoryEnd::PassHeartbeat() {
  if (heartbeat_ == nullptr || heartbeat_passed_) return false;
  heartbeat_passed_ = connection_->Send(heartbeat_->fd()).ok();
  return heartbeat_passed_;
}

absl::StatusOr<bool> SharedMemoryEnd::PassRing() {
  if (wakeup_ == nullptr || std::exchange(ring_passed_, true)) return false;
  auto ring = RingWriter::Make();
  if (!ring.ok()) return false;  // the stream serves instead
  RETURN_IF_ERROR(connection_->Send((*ring)->fd()));
  RETURN_IF_ERROR(connection_->Send(wakeup_->fd()));
  ring_ = *std::move(ring);
  ring_->CloseFd();
  return true;
}

void SharedMemoryEnd::OnControl(std::string payload) {
  Post([self = shared_from_this(), payload = std::move(payload)] {
    wire::SharedMemoryControl parsed;
    if (parsed.ParseFromString(payload)) {
      self->OnControlMessage(parsed);
    } else {
      self->port_->Failed("it says what makes no sense");
    }
  });
}

void SharedMemoryEnd::OnControlMessage(
    const wire::SharedMemoryControl& control) {
  if (control.has_mapped()) {
    if (control.mapped().watched()) {
      MutexLock lock(mutex_);
      watched_ = true;
    }
    ring_mapped_ = ring_mapped_ || control.mapped().ring();
    OnMapped(control.mapped().segment(), control.mapped().failure());
  } else if (control.has_passed()) {
    const wire::SharedMemoryControl::Passed& passed = control.passed();
    const absl::Status status = Map(passed);
    wire::SharedMemoryControl answer;
    answer.mutable_mapped()->set_watched(passed.heartbeat() && Watch().ok());
    answer.mutable_mapped()->set_ring(passed.ring() && MapRing().ok());
    answer.mutable_mapped()->set_segment(passed.segment());
    answer.mutable_mapped()->set_failure(std::string(status.message()));
    SendControl(answer);
    Start();
  } else if (control.has_close()) {
    imported_->Close(control.close());
    wire::SharedMemoryControl answer;
    answer.set_closed(control.close());
    SendControl(answer);
  } else if (control.has_closed()) {
    returning_.erase(control.closed());
  } else {
    // Only the peer's direction has failed; this one finds out by itself.
    LogDebug("the peer shares no memory: ", control.failed());
    Start();
  }
  UseRing();
}

absl::Status SharedMemoryEnd::Map(
    const wire::SharedMemoryControl::Passed& passed) {
  const size_t bytes = passed.bytes();
  RETURN_IF_ERROR(Connected());
  // Must come first, so that each segment gets its own descriptor.
  ASSIGN_OR_RETURN(Fd fd, connection_->Receive());
  Part part;
  if (mapped_one_ || bytes != kFirstBytes) {
    part = budget_.mapped->Take(bytes, bytes, budget_.bytes);
    if (bytes < kFirstBytes || part == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a segment of ", bytes, " bytes beside ", budget_.mapped->taken(),
          " that are mapped; at most ", budget_.bytes, " are allowed"));
    }
  }
  ASSIGN_OR_RETURN(Segment segment, Segment::Open(std::move(fd), bytes));
  std::shared_ptr<void> pinned;
  if (mapped_one_ && budget_.pin) pinned = budget_.pin(segment.data(), bytes);
  mapped_one_ = true;
  return imported_->Add(
      passed.segment(),
      Budgeted(std::move(segment), std::move(part), std::move(pinned)));
}

absl::Status SharedMemoryEnd::Watch() {
  RETURN_IF_ERROR(Connected());
  ASSIGN_OR_RETURN(const Fd fd, connection_->Receive());
  ASSIGN_OR_RETURN(std::unique_ptr<HeartbeatWatch> watch,
                   HeartbeatWatch::Open(fd));
  MutexLock lock(mutex_);
  if (!lost_) watch_ = std::move(watch);
  return absl::OkStatus();
}

absl::Status SharedMemoryEnd::MapRing() {
  RETURN_IF_ERROR(Connected());
  ASSIGN_OR_RETURN(Fd ring, connection_->Receive());
  ASSIGN_OR_RETURN(Fd peer_wakeup, connection_->Receive());
  if (wakeup_ == nullptr || peer_wakeup_ != nullptr) {
    return absl::FailedPreconditionError("no ring is wanted");
  }
  ASSIGN_OR_RETURN(auto reader, RingReader::Open(std::move(ring)));
  ASSIGN_OR_RETURN(peer_wakeup_, FutexEvent::Open(std::move(peer_wakeup)));
  port_->RingFrom({std::move(reader), peer_wakeup_});
  return absl::OkStatus();
}

void SharedMemoryEnd::UseRing() {
  if (!ring_mapped_ || ring_ == nullptr || peer_wakeup_ == nullptr) return;
  port_->RingTo({std::move(ring_), peer_wakeup_});
}

void SharedMemoryEnd::OnMapped(uint32_t id, const std::string& failure) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    const auto found = passed_.find(id);
    if (found == passed_.end()) return;
    if (failure.empty()) {
      growing_ = false;
      why_not_.clear();
      first = exported_->capacity() == 0;
      exported_->Add(id, std::move(found->second));
      passed_.erase(found);
    }
  }
  if (!failure.empty()) NotGrown(id, failure);
  if (first) port_->Opened();
}

}  // namespace baton::rpc
