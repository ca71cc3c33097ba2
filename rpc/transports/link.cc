// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_args.h"
#include "rpc/transports/framing.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{20};
constexpr milliseconds kLastRetry{1000};
constexpr milliseconds kAnswerTimeout{5000};
// For the other side's stream, after it was preferred to ours.
constexpr milliseconds kYieldTimeout{1000};
// Small messages that wait are written together.
constexpr size_t kControlWriteBytes = size_t{64} << 10;
constexpr size_t kRememberIncarnations = 16;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target) {
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                   DialArguments());
}

absl::Status Lost(const WorkerInfo& peer, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("lost the connection to worker ",
                                             peer.name, ": ", why.message()));
}

}  // namespace

std::shared_ptr<Link> Link::Make(LinkHost& host, const WorkerInfo& peer) {
  std::shared_ptr<Link> link(new Link(host, peer));
  link->deliveries_ = std::make_shared<Deliveries>(
      host.gate, host.executor, host.options.max_undelivered_bytes,
      [weak = std::weak_ptr<Link>(link)] {
        if (auto self = weak.lock()) self->ResumeReading();
      });
  return link;
}

void Link::SetPeer(const WorkerInfo& peer) {
  MutexLock lock(mutex_);
  if (peer_ == peer) return;
  const bool same = peer.incarnation == 0 || peer_.incarnation == 0 ||
                    peer.incarnation == peer_.incarnation;
  if (!same) {
    ForgetIncarnationLocked();
    std::erase(past_, peer.incarnation);  // whoever sets it knows better
    was_up_ = false;
  }
  const uint64_t incarnation = peer_.incarnation;
  peer_ = peer;
  if (peer.incarnation == 0) peer_.incarnation = incarnation;
}

bool Link::idle() const {
  MutexLock lock(mutex_);
  return state_ == State::kIdle;
}

void Link::Send(std::shared_ptr<Outgoing> message) {
  MutexLock lock(mutex_);
  // A sender may hold a link that was closed meanwhile; a dial from here would
  // outlive it.
  if (!closed_.ok()) {
    message->Fail(closed_);
    return;
  }
  if (saying_goodbye_ || host_.stopping) {
    message->Fail(absl::UnavailableError("the transport is shut down"));
    return;
  }
  Side& side = message->bulk() ? bulk_ : control_;
  side.queue.push_back(std::move(message));
  if (state_ == State::kIdle) {
    StartDialLocked();
  } else {
    PumpLocked(side);
  }
}

void Link::StartDialLocked() {
  state_ = State::kDialing;
  attempt_ = ++host_.attempts;  // outdates the timers of earlier dials
  dial_deadline_ = Clock::now() + (was_up_ ? host_.options.reconnect_timeout
                                           : host_.options.connect_timeout);
  retry_delay_ = kFirstRetry;
  last_failure_ = absl::UnavailableError("nobody listens there");
  RetryLocked();
}

// A fresh round over all targets.
void Link::RetryLocked() {
  resting_ = false;
  targets_ = DialTargets(peer_.address);
  target_ = 0;
  if (targets_.empty()) {
    AttemptFailedLocked(absl::UnavailableError("its socket is not there"));
    return;
  }
  TryLocked();
}

void Link::TryLocked() {
  attempt_ = ++host_.attempts;
  Hello hello = MakeHello(host_.options, host_.self, peer_);
  hello.attempt = attempt_;
  control_.lane =
      Lane::Dial(ChannelTo(targets_[target_]), shared_from_this(),
                 host_.options.max_message_bytes, host_.lanes, *host_.executor);
  control_.writing = true;
  control_.lane->Write(Encode(hello));
  AfterLocked(kAnswerTimeout, &Link::TimedOutLocked);
}

void Link::DialBulkLocked() {
  Hello hello = MakeHello(host_.options, host_.self, peer_);
  hello.attempt = attempt_;
  hello.bulk = true;
  bulk_.lane =
      Lane::Dial(ChannelTo(targets_[target_]), shared_from_this(),
                 host_.options.max_message_bytes, host_.lanes, *host_.executor);
  bulk_.writing = true;
  bulk_.lane->Write(Encode(hello));
}

void Link::AfterLocked(milliseconds delay, void (Link::*then)()) {
  host_.timer->After(
      delay, [weak = weak_from_this(), attempt = attempt_, then] {
        auto self = weak.lock();
        if (self == nullptr) return;
        MutexLock lock(self->mutex_);
        if (self->state_ != State::kDialing || self->attempt_ != attempt) {
          return;
        }
        ((*self).*then)();
      });
}

void Link::TimedOutLocked() {
  AttemptFailedLocked(absl::UnavailableError("it does not answer"));
}

void Link::AttemptFailedLocked(const absl::Status& why) {
  if (control_.lane != nullptr) control_.lane->Close();
  control_.lane = nullptr;
  control_.writing = false;
  last_failure_ = why;
  if (target_ + 1 < targets_.size()) {
    ++target_;
    TryLocked();
  } else {
    RestLocked();
  }
}

void Link::RestLocked() {
  if (Clock::now() + retry_delay_ >= dial_deadline_ || host_.stopping) {
    DialFailedLocked(absl::UnavailableError(
        absl::StrCat("cannot reach worker ", peer_.name, " at ", peer_.address,
                     ": ", last_failure_.message())));
    return;
  }
  resting_ = true;
  AfterLocked(retry_delay_, &Link::RetryLocked);
  retry_delay_ = std::min(2 * retry_delay_, kLastRetry);
}

void Link::DialFailedLocked(const absl::Status& why) {
  if (control_.lane != nullptr) control_.lane->Close();
  control_.lane = nullptr;
  FailQueuesLocked(why);
  BecomeIdleLocked();
}

Link::Side* Link::Find(const Lane& lane) {
  if (control_.lane.get() == &lane) return &control_;
  if (bulk_.lane.get() == &lane) return &bulk_;
  return nullptr;
}

bool Link::OnFrames(Lane& lane, const grpc::ByteBuffer& frames) {
  Receiver::Batch batch;
  absl::Status status = lane.receiver().Consume(frames, batch);
  bool more = false;
  {
    MutexLock lock(mutex_);
    Side* side = Find(lane);
    if (side == nullptr) return false;
    if (status.ok()) status = HandleLocked(*side, batch);
    if (!status.ok()) {
      const absl::Status garbage = absl::UnavailableError(
          absl::StrCat("it sent what makes no sense: ", status.message()));
      LogWarning("worker ", peer_.name, ": ", garbage.message());
      if (state_ == State::kUp) {
        BreakLocked(Lost(peer_, garbage), true);
      } else {
        AttemptFailedLocked(garbage);
      }
    }
    more = Find(lane) != nullptr && deliveries_->has_room();
  }
  if (host_.options.inline_delivery) {
    deliveries_->RunHere();
  } else {
    deliveries_->Post();
  }
  // What paused the lane may have been delivered by now.
  return more || deliveries_->has_room();
}

absl::Status Link::HandleLocked(Side& side, Receiver::Batch& batch) {
  bool goodbye = false;
  for (const Receiver::Control& control : batch.controls) {
    if (control.kind == FrameKind::kHelloAnswer && !side.ready) {
      ASSIGN_OR_RETURN(HelloAnswer answer, ParseHelloAnswer(control.meta));
      RETURN_IF_ERROR(OnAnswerLocked(side, answer));
    } else if (control.kind == FrameKind::kGoodbye && side.ready) {
      goodbye = true;
    } else {
      return absl::InvalidArgumentError("a hello at the wrong time");
    }
  }
  if (!batch.messages.empty() && !side.ready) {
    return absl::InvalidArgumentError("a message before the hello");
  }
  for (Message& message : batch.messages) {
    deliveries_->Push(peer_, std::move(message),
                      batch.bytes / batch.messages.size());
  }
  if (goodbye) GoodbyeReceivedLocked(side);
  return absl::OkStatus();
}

absl::Status Link::OnAnswerLocked(Side& side, const HelloAnswer& answer) {
  const absl::Status text = absl::UnavailableError(answer.text);
  if (&side == &bulk_) {
    if (answer.verdict == Verdict::kOk) {
      side.ready = true;
      PumpLocked(side);
    } else {
      BreakLocked(Lost(peer_, text), true);
    }
    return absl::OkStatus();
  }
  switch (answer.verdict) {
    case Verdict::kOk:
      ConnectedLocked(answer);
      break;
    case Verdict::kYield:
      control_.lane->Close();
      control_.lane = nullptr;
      AfterLocked(kYieldTimeout, &Link::TimedOutLocked);
      break;
    case Verdict::kRefused:
      DialFailedLocked(absl::FailedPreconditionError(answer.text));
      break;
    case Verdict::kNotMe:
      if (target_ + 1 < targets_.size()) {
        AttemptFailedLocked(text);
      } else {
        DialFailedLocked(text);
      }
      break;
    case Verdict::kStale:
    case Verdict::kShutDown:
      AttemptFailedLocked(text);
      break;
  }
  return absl::OkStatus();
}

void Link::ConnectedLocked(const HelloAnswer& answer) {
  if (answer.self.name != peer_.name ||
      (peer_.incarnation != 0 &&
       answer.self.incarnation != peer_.incarnation)) {
    AttemptFailedLocked(absl::UnavailableError(
        absl::StrCat("worker ", answer.self.name, " answers there")));
    return;
  }
  peer_.incarnation = answer.self.incarnation;
  peer_.rank = answer.self.rank;
  stale_attempt_ = std::max(stale_attempt_, answer.abandoned_attempt);
  state_ = State::kUp;
  was_up_ = true;
  control_.ready = true;
  DialBulkLocked();
  PumpLocked(control_);
}

void Link::Accept(const std::shared_ptr<Lane>& lane, const Hello& hello) {
  MutexLock lock(mutex_);
  if (!closed_.ok()) {
    lane->CloseWith(Encode(HelloAnswer{.verdict = Verdict::kStale,
                                       .text = std::string(closed_.message()),
                                       .self = host_.self}));
    return;
  }
  const Verdict verdict =
      hello.bulk ? (WantsBulkLocked(hello) ? Verdict::kOk : Verdict::kStale)
                 : JudgeControlLocked(hello);
  HelloAnswer answer{.verdict = verdict, .self = host_.self};
  if (verdict != Verdict::kOk) {
    answer.text = verdict == Verdict::kRefused
                      ? absl::StrCat("another process is worker ", peer_.name,
                                     " by now; this one has been replaced")
                      : "another connection was made meanwhile";
    lane->CloseWith(Encode(answer));
    return;
  }
  if (!hello.bulk) {
    if (state_ == State::kUp) {
      BreakLocked(Lost(peer_, absl::UnavailableError("it connected anew")),
                  true);
    }
    if (control_.lane != nullptr) control_.lane->Close();
    stale_attempt_ = accepted_attempt_ = hello.attempt;
    answer.abandoned_attempt = attempt_;
    state_ = State::kUp;
    was_up_ = true;
  }
  Side& side = hello.bulk ? bulk_ : control_;
  side.lane = lane;
  side.ready = side.writing = true;
  if (!lane->SetOwner(shared_from_this())) {
    BreakLocked(Lost(peer_, absl::UnavailableError("it closed at once")), true);
    return;
  }
  lane->Write(Encode(answer));
}

Verdict Link::JudgeControlLocked(const Hello& hello) {
  if (peer_.incarnation != hello.self.incarnation) {
    // A process that hung and woke must not end its successor's connection.
    if (std::find(past_.begin(), past_.end(), hello.self.incarnation) !=
        past_.end()) {
      return Verdict::kRefused;
    }
    if (peer_.incarnation != 0) ForgetIncarnationLocked();
    stale_attempt_ = 0;
    const std::string address = peer_.address;
    peer_ = hello.self;
    if (peer_.address.empty()) peer_.address = address;
  }
  if (hello.attempt <= stale_attempt_) return Verdict::kStale;
  const bool we_dial = state_ == State::kDialing && control_.lane != nullptr;
  if (we_dial && host_.self.name < peer_.name) return Verdict::kYield;
  return Verdict::kOk;
}

void Link::ForgetIncarnationLocked() {
  past_.push_back(peer_.incarnation);
  if (past_.size() > kRememberIncarnations) past_.pop_front();
  BreakLocked(absl::UnavailableError(
                  absl::StrCat("worker ", peer_.name, " has started again")),
              true);
  stale_attempt_ = 0;
}

bool Link::WantsBulkLocked(const Hello& hello) {
  return state_ == State::kUp && bulk_.lane == nullptr &&
         hello.self.incarnation == peer_.incarnation &&
         hello.attempt == accepted_attempt_;
}

void Link::OnWritten(Lane& lane) {
  MutexLock lock(mutex_);
  Side* side = Find(lane);
  if (side == nullptr) return;
  side->writing = false;
  for (const auto& message : side->in_flight) message->Written();
  side->in_flight.clear();
  PumpLocked(*side);
}

void Link::PumpLocked(Side& side) {
  if (!side.ready || side.writing) return;
  std::vector<grpc::Slice> slices;
  size_t budget = &side == &bulk_ ? kChunkBytes : kControlWriteBytes;
  while (!side.queue.empty() && budget > 0) {
    if (!Outgoing::Take(side.queue.front(), budget, slices)) break;
    side.in_flight.push_back(std::move(side.queue.front()));
    side.queue.pop_front();
  }
  if (slices.empty()) {
    PumpGoodbyeLocked();
    return;
  }
  side.writing = true;
  side.lane->Write(grpc::ByteBuffer(slices.data(), slices.size()));
}

// Only once nothing is left on either lane: the peer closes the link on it.
void Link::PumpGoodbyeLocked() {
  if (!saying_goodbye_ || state_ != State::kUp) return;
  for (Side* side : {&control_, &bulk_}) {
    if (side->writing || !side->queue.empty()) return;
  }
  for (Side* side : {&control_, &bulk_}) {
    if (!side->ready || std::exchange(side->goodbye_sent, true)) continue;
    side->writing = true;
    side->lane->Write(MetaFrame(FrameKind::kGoodbye, ""));
  }
}

void Link::BeginGoodbye() {
  MutexLock lock(mutex_);
  saying_goodbye_ = true;
  if (state_ == State::kDialing && resting_) {
    RestLocked();  // nobody to say it to
  } else {
    PumpGoodbyeLocked();
  }
}

void Link::GoodbyeReceivedLocked(Side& side) {
  side.goodbye_received = true;
  if (control_.goodbye_received && (bulk_.goodbye_received || !bulk_.ready)) {
    BreakLocked(Lost(peer_, absl::UnavailableError("it has shut down")), true);
  }
}

void Link::OnBroken(Lane& lane, const absl::Status& why) {
  MutexLock lock(mutex_);
  if (Find(lane) == nullptr) return;
  if (state_ == State::kUp) {
    BreakLocked(Lost(peer_, why), true);
  } else {
    AttemptFailedLocked(why);
  }
}

void Link::Break(const absl::Status& why, bool tell) {
  MutexLock lock(mutex_);
  BreakLocked(why, tell);
}

void Link::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  closed_ = why;
  BreakLocked(why, false);
}

void Link::BreakLocked(const absl::Status& why, bool tell) {
  if (state_ == State::kUp && tell && !host_.stopping) {
    deliveries_->PushLost(peer_, why);
    deliveries_->Post();
  }
  for (Side* side : {&control_, &bulk_}) {
    if (side->lane != nullptr) side->lane->Close();
  }
  FailQueuesLocked(why);
  BecomeIdleLocked();
}

void Link::FailQueuesLocked(const absl::Status& why) {
  for (Side* side : {&control_, &bulk_}) {
    for (const auto& message : side->queue) message->Fail(why);
    for (const auto& message : side->in_flight) message->Fail(why);
    *side = Side();
  }
}

void Link::BecomeIdleLocked() {
  state_ = State::kIdle;
  resting_ = false;
  MutexLock lock(host_.idle_mutex);
  ++host_.idle_events;
  host_.idle.NotifyAll();
}

void Link::ResumeReading() {
  MutexLock lock(mutex_);
  for (Side* side : {&control_, &bulk_}) {
    if (side->lane != nullptr) side->lane->ResumeReading();
  }
}

}  // namespace baton::rpc
