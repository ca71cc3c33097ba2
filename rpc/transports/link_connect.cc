// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/security.h"
#include "rpc/transports/address.h"
#include "rpc/transports/channel_kinds.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/link.h"
#include "rpc/wire.pb.h"
#include "rpc/worker.h"

// How a link comes up: which end dials, and which callers are admitted.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{20};
constexpr milliseconds kLastRetry{1000};
constexpr milliseconds kAnswerTimeout{5000};
// How long to wait for the other end's stream after it was preferred to ours.
constexpr milliseconds kYieldTimeout{1000};
constexpr size_t kRememberIncarnations = 16;

}  // namespace

void Link::SetPeer(const WorkerInfo& peer) {
  const absl::Status dialable =
      CheckPeerExposure(host_.options.security, peer, Names::kResolve);
  MutexLock lock(mutex_);
  checked_ = peer.address;
  dialable_ = dialable;
  if (peer_ == peer) return;
  const bool same = peer.incarnation == 0 || peer_.incarnation == 0 ||
                    peer.incarnation == peer_.incarnation;
  if (!same) {
    ForgetIncarnationLocked();
    std::erase(past_, peer.incarnation);  // the caller of SetPeer knows better
    was_up_ = false;
  }
  const uint64_t incarnation = peer_.incarnation;
  peer_ = peer;
  if (peer.incarnation == 0) peer_.incarnation = incarnation;
}

void Link::StartDialLocked() {
  state_ = State::kDialing;
  attempt_ = ++host_.attempts;  // invalidates the timers of earlier dials
  // The incarnation is known only from a peer that has listened already.
  const bool was_there = was_up_ || peer_.incarnation != 0;
  const GrpcOptions& options = host_.options;
  const milliseconds again = options.reconnect_timeout.value_or(
      options.lease.count() == 0 ? options.connect_timeout
                                 : SilenceWithin(options.lease));
  dial_deadline_ = Clock::now() + (was_there ? again : options.connect_timeout);
  retry_delay_ = kFirstRetry;
  last_failure_ = absl::UnavailableError("nobody listens there");
  RetryLocked();
}

// Starts a new round over all targets.
void Link::RetryLocked() {
  resting_ = false;
  // Nothing may wait for the resolver here, so a name that only the peer itself
  // told counts as another machine's.
  const absl::Status dialable =
      peer_.address == checked_
          ? dialable_
          : CheckPeerExposure(host_.options.security, peer_, Names::kRefuse);
  if (!dialable.ok()) {
    DialFailedLocked(dialable);
    return;
  }
  targets_ = DialTargets(peer_.address);
  target_ = 0;
  if (targets_.empty()) {
    AttemptFailedLocked(absl::UnavailableError("its socket is not there"));
    return;
  }
  TryLocked();
}

std::shared_ptr<GrpcStream> Link::DialStreamLocked() {
  const Security& security = host_.options.security;
  const std::string& target = targets_[target_];
  // A middlebox on the network may forget a silent connection.
  const auto keepalive = absl::StartsWith(target, "unix:")
                             ? KeepaliveOf(host_.options.lease)
                             : Keepalive::kOn;
  return GrpcStream::Dial(
      SecureChannel(security, target, peer_.name, DialArguments(keepalive)),
      shared_from_this(), host_.options.max_message_bytes, host_.streams,
      *host_.executor);
}

void Link::StreamState::CloseStream() {
  if (grpc != nullptr) grpc->Close();
  grpc = nullptr;
  writing = false;
  hello.clear();
  proof.clear();
}

void Link::SayHelloLocked() {
  stream_.CloseStream();
  if (!host_.options.security.token.empty()) {
    // A hello without a nonce is refused.
    if (const auto nonce = NewKey(); nonce.ok()) hello_->set_nonce(*nonce);
    stream_.hello = hello_->SerializeAsString();
  }
  stream_.grpc = DialStreamLocked();
  WriteLocked(Encode(*hello_));
}

void Link::TryLocked() {
  attempt_ = ++host_.attempts;
  hello_ = std::make_shared<wire::Hello>(
      MakeHello(host_.options, host_.self, peer_));
  hello_->set_attempt(attempt_);
  *hello_->mutable_channels() = OffersOf(host_.kinds);
  SayHelloLocked();
  AfterLocked(std::min(kAnswerTimeout, std::chrono::ceil<milliseconds>(std::max(
                                           dial_deadline_ - Clock::now(),
                                           Clock::duration(kFirstRetry)))),
              &Link::TimedOutLocked);
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
  stream_.CloseStream();
  last_failure_ = ExplainFailure(host_.options.security, peer_.name, why);
  if (absl::IsUnauthenticated(last_failure_)) {
    DialFailedLocked(UnreachableLocked());
  } else if (target_ + 1 < targets_.size()) {
    ++target_;
    TryLocked();
  } else {
    RestLocked();
  }
}

absl::Status Link::UnreachableLocked() const {
  return {last_failure_.code(),
          absl::StrCat("cannot reach worker ", peer_.name, " at ",
                       peer_.address, ": ", last_failure_.message())};
}

void Link::RestLocked() {
  if (Clock::now() + retry_delay_ >= dial_deadline_ || host_.stopping) {
    DialFailedLocked(UnreachableLocked());
    return;
  }
  resting_ = true;
  AfterLocked(retry_delay_, &Link::RetryLocked);
  retry_delay_ = std::min(2 * retry_delay_, kLastRetry);
}

void Link::DialFailedLocked(const absl::Status& why) {
  stream_.CloseStream();
  FailQueuesLocked(why);
  BecomeIdleLocked();
}

absl::Status Link::OnChallengeLocked(const wire::Challenge& challenge) {
  const std::string& token = host_.options.security.token;
  const std::string hello = std::exchange(stream_.hello, {});
  if (hello.empty()) {
    return absl::InvalidArgumentError("a challenge at the wrong time");
  }
  if (!SameToken(challenge.proof(),
                 ProofOf(HelloRole::kDialed, token, hello, challenge))) {
    return TokensDiffer("it does not prove to know the cluster token");
  }
  // The challenger may know the token because it is this worker itself, to
  // which somebody has relayed this worker's hello.
  if (challenge.self().name() != peer_.name) {
    return OnAnswerLocked(Refusal(
        wire::VERDICT_NOT_ME,
        absl::StrCat("worker ", challenge.self().name(), " lives where worker ",
                     peer_.name, " was expected")));
  }
  stream_.proof = ProofOf(HelloRole::kDialer, token, hello, challenge);
  PumpLocked();
  return absl::OkStatus();
}

absl::Status Link::OnAnswerLocked(const wire::HelloAnswer& answer) {
  if (!stream_.hello.empty() && answer.verdict() != wire::VERDICT_UNPROVEN) {
    return TokensDiffer("it does not prove to know the cluster token");
  }
  const absl::Status text = absl::UnavailableError(answer.text());
  switch (answer.verdict()) {
    case wire::VERDICT_OK:
      ConnectedLocked(answer);
      break;
    case wire::VERDICT_YIELD:
      stream_.CloseStream();
      AfterLocked(kYieldTimeout, &Link::TimedOutLocked);
      break;
    case wire::VERDICT_REFUSED:
      DialFailedLocked(absl::FailedPreconditionError(answer.text()));
      break;
    case wire::VERDICT_NOT_ME:
      if (target_ + 1 < targets_.size()) {
        AttemptFailedLocked(text);
      } else {
        DialFailedLocked(text);
      }
      break;
    case wire::VERDICT_UNPROVEN:
      AttemptFailedLocked(absl::UnauthenticatedError(answer.text()));
      break;
    default:  // another attempt may succeed
      AttemptFailedLocked(text);
      break;
  }
  return absl::OkStatus();
}

void Link::ConnectedLocked(const wire::HelloAnswer& answer) {
  const wire::Worker& peer = answer.self();
  if (peer.name() != peer_.name ||
      (peer_.incarnation != 0 && peer.incarnation() != peer_.incarnation)) {
    AttemptFailedLocked(absl::UnavailableError(
        absl::StrCat("worker ", peer.name(), " answers there")));
    return;
  }
  peer_.incarnation = peer.incarnation();
  peer_.rank = Rank{peer.rank()};
  stale_attempt_ = std::max(stale_attempt_, answer.abandoned_attempt());
  BecomeUpLocked(milliseconds(answer.lease_ms()), answer.max_message_bytes());
  traffic_.detail = targets_[target_];
  stream_.ready = true;
  OpenChannelsLocked(true, std::exchange(hello_, nullptr)->channels(),
                     answer.channels());
  channels_->Start();
  PumpLocked();
}

bool Link::Accept(const std::shared_ptr<GrpcStream>& stream,
                  const wire::Hello& hello) {
  MutexLock lock(mutex_);
  if (!closed_.ok()) {
    stream->CloseWith(
        Encode(Refusal(wire::VERDICT_STALE, std::string(closed_.message()))));
    return false;
  }
  if (const wire::Verdict verdict = JudgeLocked(hello);
      verdict != wire::VERDICT_OK) {
    stream->CloseWith(Encode(Refusal(
        verdict, verdict == wire::VERDICT_REFUSED
                     ? absl::StrCat("another process is worker ", peer_.name,
                                    " by now; this one has been replaced")
                     : "another connection was made meanwhile")));
    return false;
  }
  if (state_ == State::kUp)
    BreakLocked(LostLocked(absl::UnavailableError("it connected anew")), true);
  stream_.CloseStream();
  stale_attempt_ = hello.attempt();
  wire::HelloAnswer answer;
  ToWire(host_.self, *answer.mutable_self());
  answer.set_abandoned_attempt(attempt_);
  answer.set_lease_ms(host_.options.lease.count());
  *answer.mutable_channels() = OffersOf(host_.kinds);
  answer.set_max_message_bytes(host_.options.max_message_bytes);
  BecomeUpLocked(milliseconds(hello.lease_ms()), hello.max_message_bytes());
  OpenChannelsLocked(false, answer.channels(), hello.channels());
  traffic_.detail = "dialed by the peer";
  stream_.grpc = stream;
  stream_.ready = stream_.writing = true;
  if (!stream->SetObserver(shared_from_this())) {
    BreakLocked(LostLocked(absl::UnavailableError("it closed at once")), true);
    return false;
  }
  stream->Write(Encode(answer));
  return true;
}

void Link::OpenChannelsLocked(bool dialed, const ChannelOffers& ours,
                              const ChannelOffers& theirs) {
  channels_ = TensorChannels::Make(host_.kinds, ours, theirs,
                                   {.self = host_.self.name,
                                    .peer = peer_.name,
                                    .dialed = dialed,
                                    .timer = host_.timer.get(),
                                    .wake = [weak = weak_from_this()] {
                                      if (const auto self = weak.lock())
                                        self->PumpChannels();
                                    }});
}

wire::Verdict Link::JudgeLocked(const wire::Hello& hello) {
  const uint64_t incarnation = hello.self().incarnation();
  if (peer_.incarnation != incarnation) {
    const bool another = peer_.incarnation != 0;
    // A process that was hung must not end its successor's connection.
    if (another &&
        std::find(past_.begin(), past_.end(), incarnation) != past_.end()) {
      return wire::VERDICT_REFUSED;
    }
    if (another) ForgetIncarnationLocked();
    stale_attempt_ = 0;
    const std::string address = peer_.address;
    peer_ = FromWire(hello.self()).value();
    if (peer_.address.empty()) peer_.address = address;
  }
  if (hello.attempt() <= stale_attempt_) return wire::VERDICT_STALE;
  const bool we_dial = state_ == State::kDialing && stream_.grpc != nullptr;
  return we_dial && host_.self.name < peer_.name ? wire::VERDICT_YIELD
                                                 : wire::VERDICT_OK;
}

void Link::RememberIncarnationLocked() {
  past_.push_back(peer_.incarnation);
  if (past_.size() > kRememberIncarnations) past_.pop_front();
}

void Link::ForgetIncarnationLocked() {
  RememberIncarnationLocked();
  BreakLocked(absl::UnavailableError(
                  absl::StrCat("worker ", peer_.name, " has started again")),
              true);
  stale_attempt_ = 0;
}

}  // namespace baton::rpc
