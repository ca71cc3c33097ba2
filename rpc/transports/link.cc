// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/transports/framing.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

// Waiting small messages are written together, up to this size.
constexpr size_t kControlWriteBytes = size_t{64} << 10;

}  // namespace

std::shared_ptr<Link> Link::Make(LinkHost& host, const WorkerInfo& peer,
                                 Incarnations past) {
  std::shared_ptr<Link> link(new Link(host, peer, std::move(past)));
  const auto resume = [weak = std::weak_ptr<Link>(link)] {
    if (auto self = weak.lock()) self->ResumeReading();
  };
  link->deliveries_ = std::make_shared<Deliveries>(
      host.gate, host.executor, host.options.max_undelivered_bytes, resume);
  link->held_ = std::make_shared<PendingMessages>(
      link->deliveries_, host.options.max_undelivered_bytes,
      host.options.max_message_bytes, resume,
      [weak = std::weak_ptr<Link>(link)](const absl::Status& why) {
        if (auto self = weak.lock()) self->BreakForTensor(why);
      });
  return link;
}

void Link::BreakForTensor(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (state_ != State::kUp) return;
  BreakLocked(LostLocked(absl::UnavailableError(
                  absl::StrCat("a tensor did not come: ", why.message()))),
              true);
}

bool Link::idle() const {
  MutexLock lock(mutex_);
  return state_ == State::kIdle;
}

ChannelInfo Link::channel() const {
  MutexLock lock(mutex_);
  ChannelInfo channel = traffic_;
  channel.peer = peer_.name;
  channel.name = "grpc";
  channel.up = state_ == State::kUp;
  if (ring_out_ != nullptr) {
    absl::StrAppend(&channel.detail, ", small messages by shared memory");
  }
  return channel;
}

void Link::Send(std::shared_ptr<Outgoing> message) {
  MutexLock lock(mutex_);
  // A sender may still have a link that was closed meanwhile; a connection
  // dialed here would outlive it.
  if (!closed_.ok()) {
    message->Fail(closed_);
    return;
  }
  if (saying_goodbye_ || host_.stopping) {
    message->Fail(absl::UnavailableError("the transport is shut down"));
    return;
  }
  if (message->channels() != nullptr && message->channels() != channels_) {
    // After the OnPeerLost of the connection whose channels took its tensors.
    deliveries_->PushTask(
        [message = std::move(message),
         broken = LostLocked(absl::UnavailableError("it broke meanwhile"))] {
          message->Fail(broken);
        });
    deliveries_->Post();
    return;
  }
  if (state_ == State::kUp && RefuseIfTooLargeLocked(*message)) return;
  Queue& queue = message->chunked() ? stream_.large : stream_.small;
  queue.push_back(std::move(message));
  if (state_ == State::kIdle) {
    StartDialLocked();
  } else {
    PumpLocked();
  }
}

size_t Link::StreamState::UnderWay() const {
  size_t bytes = 0;
  for (const auto& message : in_flight) bytes += message->bytes();
  if (!large.empty() && large.front()->begun()) bytes += large.front()->bytes();
  return bytes;
}

std::shared_ptr<TensorChannels> Link::channels() const {
  MutexLock lock(mutex_);
  return channels_;
}

void Link::OnWritten(GrpcStream& stream) {
  MutexLock lock(mutex_);
  if (stream_.grpc.get() != &stream) return;
  stream_.writing = false;
  for (const auto& message : stream_.in_flight) HasLeftLocked(message);
  stream_.in_flight.clear();
  PumpLocked();
}

void Link::HasLeftLocked(const std::shared_ptr<Outgoing>& message) {
  ++traffic_.messages_sent;
  traffic_.bytes_sent += message->bytes();
  message->Written();
  std::erase_if(leaving_, [](const auto& each) { return each.expired(); });
  if (message->awaits_channels()) leaving_.push_back(message);
}

bool Link::RefuseIfTooLargeLocked(Outgoing& message) const {
  if (peer_max_bytes_ == 0 || message.bytes() <= peer_max_bytes_) return false;
  message.Fail(absl::ResourceExhaustedError(absl::StrCat(
      "a message of ", message.bytes(), " bytes; worker ", peer_.name,
      " takes at most ", peer_max_bytes_, " (its --max_message_bytes)")));
  return true;
}

void Link::TakeLocked(Queue& queue, size_t budget,
                      std::vector<grpc::Slice>& out) {
  while (!queue.empty() && budget > 0) {
    if (!Outgoing::Take(queue.front(), budget, out)) break;
    stream_.in_flight.push_back(std::move(queue.front()));
    queue.pop_front();
  }
}

// Small messages and chunks are not written together, because the peer gets
// nothing of a write before all of it has arrived.
std::vector<grpc::Slice> Link::NextWriteLocked() {
  std::vector<grpc::Slice> slices;
  if (stream_.pauses != stream_.told_pauses) {
    stream_.told_pauses = stream_.pauses;
    slices.push_back(
        MetaSlice(stream_.pauses ? FrameKind::kPause : FrameKind::kResume, ""));
  }
  const bool large = !stream_.large.empty() && !stream_.peer_pauses;
  const bool turn_of_large = std::exchange(stream_.large_next, false) && large;
  if (!turn_of_large && ring_out_ == nullptr) {
    const std::string said = channels_->TakeFrame();
    if (!said.empty()) slices.push_back(MetaSlice(FrameKind::kChannel, said));
    TakeLocked(stream_.small, kControlWriteBytes, slices);
  }
  stream_.large_next = !slices.empty();
  if (slices.empty() && large) TakeLocked(stream_.large, kChunkBytes, slices);
  return slices;
}

void Link::WriteLocked(grpc::ByteBuffer frames) {
  stream_.writing = true;
  stream_.grpc->Write(std::move(frames));
}

void Link::PumpLocked() {
  TakeUpRingLocked();
  if (ring_out_ != nullptr) PumpRingLocked();
  if (stream_.writing) return;
  if (!stream_.proof.empty()) {
    WriteLocked(EncodeProof(std::exchange(stream_.proof, {})));
    return;
  }
  if (!stream_.ready) return;
  const std::vector<grpc::Slice> slices = NextWriteLocked();
  if (slices.empty()) {
    PumpGoodbyeLocked();
    return;
  }
  failure_detector_.Spoke();
  WriteLocked(grpc::ByteBuffer(slices.data(), slices.size()));
}

void Link::PumpChannels() {
  MutexLock lock(mutex_);
  if (channels_ != nullptr) {
    const std::string broken = channels_->broken();
    if (!broken.empty())
      return BreakLocked(LostLocked(absl::UnavailableError(broken)), true);
  }
  PumpLocked();
}

void Link::BecomeUpLocked(milliseconds lease, uint64_t max_bytes) {
  peer_max_bytes_ = max_bytes;
  for (Queue* queue : {&stream_.small, &stream_.large}) {
    for (auto& message : std::exchange(*queue, {})) {
      if (!RefuseIfTooLargeLocked(*message))
        queue->push_back(std::move(message));
    }
  }
  state_ = State::kUp;
  was_up_ = true;
  failure_detector_ = FailureDetector(host_.options.lease, lease, Clock::now());
  failure_detector_.Heard();  // its hello
  ++times_up_;
  if (failure_detector_.interval().count() > 0) AwaitBeatLocked();
}

void Link::AwaitBeatLocked() {
  // All links beat at one time, which needs one wake-up, but not at the time
  // of other processes of the machine.
  host_.timer->At(
      failure_detector_.Next(Clock::now(), host_.self.incarnation),
      [weak = weak_from_this(), times_up = times_up_] {
        auto self = weak.lock();
        if (self == nullptr) return;
        MutexLock lock(self->mutex_);
        if (self->state_ == State::kUp && self->times_up_ == times_up) {
          self->BeatLocked();
        }
      });
}

void Link::BeatLocked() {
  // The peer's messages are not read while too many of them wait here.
  if (!deliveries_->has_room()) failure_detector_.Heard();
  if (channels_ != nullptr) {
    const Channel::Signs signs = channels_->Beat();
    if (signs.alive) failure_detector_.Heard();
    if (signs.seen) failure_detector_.Spoke();
  }
  if (ring_in_ != nullptr) host_.poller->Check(*ring_in_);
  if (ring_out_ != nullptr) host_.poller->Check(*ring_out_);
  const FailureDetector::Due due = failure_detector_.Beat(Clock::now());
  if (due.silent) {
    const absl::Status silent = absl::DeadlineExceededError(
        absl::StrCat("worker ", peer_.name, " is silent for its lease of ",
                     ShownTime(host_.options.lease)));
    LogWarning(silent.message());
    BreakLocked(silent, true);
    return;
  }
  // A write under way serves as a beat: either more will arrive or the peer
  // reads nothing. Beats continue after a goodbye, since the peer may still
  // wait for tensors of earlier messages.
  if (due.speak && stream_.ready && !stream_.writing)
    WriteLocked(MetaFrame(FrameKind::kBeat, ""));
  AwaitBeatLocked();
}

absl::Status Link::LostLocked(const absl::Status& why) const {
  return absl::UnavailableError(absl::StrCat("lost the connection to worker ",
                                             peer_.name, ": ", why.message()));
}

// Only once all messages have left, because the peer then closes the link. It
// reads the rest of the ring before it handles the goodbye.
void Link::PumpGoodbyeLocked() {
  if (!saying_goodbye_ || state_ != State::kUp || !stream_.ready) return;
  if (stream_.writing || in_ring_ != nullptr || !stream_.small.empty() ||
      !stream_.large.empty() || std::exchange(stream_.goodbye_sent, true)) {
    return;
  }
  WriteLocked(MetaFrame(FrameKind::kGoodbye, ""));
}

void Link::BeginGoodbye() {
  MutexLock lock(mutex_);
  saying_goodbye_ = true;
  // Nobody is there to receive it, and a peer that broke off is not awaited.
  if (state_ == State::kDialing && (resting_ || was_up_)) {
    DialFailedLocked(UnreachableLocked());
  } else {
    PumpGoodbyeLocked();
  }
}

void Link::OnBroken(GrpcStream& stream, const absl::Status& why) {
  ReadRestOfRing();
  MutexLock lock(mutex_);
  if (stream_.grpc.get() != &stream) return;
  if (state_ == State::kUp) {
    BreakLocked(LostLocked(why), true);
  } else {
    AttemptFailedLocked(why);
  }
}

void Link::Sever(const absl::Status& why, Task then) {
  MutexLock lock(mutex_);
  BreakLocked(why, true);
  if (then == nullptr) return;
  deliveries_->PushTask(
      [then = std::move(then), executor = host_.executor]() mutable {
        executor->Post(std::move(then));
      });
  deliveries_->Post();
}

void Link::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  closed_ = why;
  BreakLocked(why, false);
}

std::optional<Link::Incarnations> Link::CloseUnlessUp(uint64_t incarnation,
                                                      const absl::Status& why) {
  MutexLock lock(mutex_);
  if (state_ == State::kUp) return std::nullopt;
  if (peer_.incarnation != 0 && peer_.incarnation != incarnation) {
    return std::nullopt;
  }
  closed_ = why;
  BreakLocked(why, false);
  if (peer_.incarnation != 0) RememberIncarnationLocked();
  return past_;
}

void Link::BreakLocked(const absl::Status& why, bool tell) {
  if (stream_.grpc != nullptr) {
    if (stream_.writing) stream_.grpc->Owes(peer_.name, stream_.UnderWay());
    stream_.grpc->Close();
  }
  DropRingsLocked();
  // Kept until their failure may be reported.
  std::vector<std::shared_ptr<Outgoing>> leaving;
  for (const auto& each : std::exchange(leaving_, {})) {
    if (auto message = each.lock()) leaving.push_back(std::move(message));
  }
  // First, so that messages that wait for tensors do not fail the connection.
  held_->Drop();
  if (channels_ != nullptr) channels_->Close();
  std::erase_if(leaving, [](const auto& each) { return !each->lost(); });
  channels_ = nullptr;
  const absl::Status failure = absl::IsDeadlineExceeded(why)
                                   ? absl::UnavailableError(why.message())
                                   : why;
  if (state_ == State::kUp && tell && !host_.stopping) {
    deliveries_->PushLost(peer_, why);
    deliveries_->PushTask(
        [messages = TakeQueuesLocked(), leaving = std::move(leaving), failure] {
          for (const auto& message : messages) message->Fail(failure);
          for (const auto& message : leaving) message->Fail(failure);
        });
    deliveries_->Post();
  } else {
    for (const auto& message : leaving) message->Fail(failure);
    FailQueuesLocked(failure);
  }
  BecomeIdleLocked();
}

std::vector<std::shared_ptr<Outgoing>> Link::TakeQueuesLocked() {
  std::vector<std::shared_ptr<Outgoing>> messages;
  const auto to = std::back_inserter(messages);
  if (in_ring_ != nullptr) messages.push_back(std::exchange(in_ring_, nullptr));
  StreamState ended = std::exchange(stream_, StreamState());
  std::move(ended.in_flight.begin(), ended.in_flight.end(), to);
  std::move(ended.small.begin(), ended.small.end(), to);
  std::move(ended.large.begin(), ended.large.end(), to);
  return messages;
}

void Link::FailQueuesLocked(const absl::Status& why) {
  for (const auto& message : TakeQueuesLocked()) message->Fail(why);
}

void Link::BecomeIdleLocked() {
  state_ = State::kIdle;
  resting_ = false;
  MutexLock lock(host_.idle_mutex);
  ++host_.idle_events;
  host_.idle.NotifyAll();
}

void AwaitIdle(LinkHost& host, const std::vector<std::shared_ptr<Link>>& links,
               milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    uint64_t seen;
    {
      MutexLock lock(host.idle_mutex);
      seen = host.idle_events;
    }
    if (std::all_of(links.begin(), links.end(),
                    [](const auto& link) { return link->idle(); })) {
      return;
    }
    MutexLock lock(host.idle_mutex);
    while (host.idle_events == seen) {
      if (!host.idle.WaitUntil(host.idle_mutex, deadline)) return;
    }
  }
}

}  // namespace baton::rpc
