// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/agent_core.h"
#include "rpc/call_options.h"

// The caller's half of a call: how it begins, fails and ends.
namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

}  // namespace

void AgentCore::Begin(const CallPtr& call) {
  call->started = Clock::now();
  const CallOptions& options = call->spec.leading.options;
  const milliseconds timeout = options.timeout.value_or(default_timeout());
  call->deadline = timeout == kNoLimit
                       ? Clock::time_point::max()
                       : call->started + std::clamp<milliseconds>(
                                             timeout, milliseconds(0),
                                             baton::internal::kLongestWait);
  if (call->spec.leading.parent.has_value()) {
    call->deadline =
        std::min(call->deadline, call->spec.leading.parent->deadline());
    call->within = call->spec.leading.parent->holds();
  } else {
    call->within = HoldsOfThread::Current();
  }
  call->to.name = call->spec.to.ToString();
  if (absl::Status status = Admit(call); !status.ok()) {
    if (call->done.exchange(true)) return;
    call->on_reply(CallFailed(status, {call->to.name, call->spec.name, true}),
                   nullptr);
    return;
  }
  Watch(call);
}

absl::Status AgentCore::Admit(const CallPtr& call) {
  MutexLock lock(mutex_);
  // If a call is admitted before the shutdown takes the lock, the shutdown ends
  // it.
  if (stopped_) return StoppedStatus();
  ASSIGN_OR_RETURN(call->peer, peers_.Find(call->spec.to));
  call->to = peers_.InfoOf(*call->peer);
  if (outgoing_.size() >= options_.max_outgoing_calls) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker ", self().name, " has ", outgoing_.size(),
                     " calls under way; wait for some or raise "
                     "max_outgoing_calls (--max_calls)"));
  }
  call->order = ++last_order_;
  outgoing_.emplace(DueOf(call), call);
  AwaitDeadlineLocked(call->deadline);
  return absl::OkStatus();
}

// If the call is claimed before this function has stored the watches, this
// function removes them.
void AgentCore::Watch(const CallPtr& call) {
  const auto cancel = [core = weak_from_this(),
                       weak = std::weak_ptr(call)](const absl::Status& why) {
    auto self = core.lock();
    CallPtr call = weak.lock();
    if (self != nullptr && call != nullptr) self->FailLater(call, why, false);
  };
  const Leading& leading = call->spec.leading;
  OutgoingCall::Watches watches;
  watches.cancel = leading.options.cancel.OnCancel(cancel);
  if (leading.parent.has_value()) {
    watches.parent = leading.parent->token().OnCancel(cancel);
  }
  if (watches.cancel == 0 && watches.parent == 0) return;
  {
    MutexLock lock(mutex_);
    if (!call->done) {
      call->watches = watches;
      return;
    }
  }
  Unwatch(*call, watches);
}

void AgentCore::Unwatch(const OutgoingCall& call,
                        const OutgoingCall::Watches& watches) {
  const Leading& leading = call.spec.leading;
  leading.options.cancel.Remove(watches.cancel);
  if (leading.parent.has_value()) {
    leading.parent->token().Remove(watches.parent);
  }
}

bool AgentCore::Claim(const CallPtr& call) {
  {
    MutexLock lock(mutex_);
    if (!ClaimLocked(*call)) return false;
  }
  EndWaiting(*call);
  return true;
}

bool AgentCore::ClaimLocked(OutgoingCall& call) {
  if (call.done.exchange(true)) return false;
  if (call.number != 0) peers_.Sent(*call.peer).erase(call.number);
  return true;
}

void AgentCore::EndWaiting(const OutgoingCall& call) {
  Unwatch(call, call.watches);
  const std::vector<ForkId>& forks = call.forks;
  if (!forks.empty()) {
    ownership_->ProbeFrom(forks, Clock::now() + 2 * options_.resend_after);
  }
}

void AgentCore::Fail(const CallPtr& call, const absl::Status& why,
                     bool retryable) {
  if (Claim(call)) ConcludeFailed(call, why, retryable);
}

void AgentCore::ConcludeFailed(const CallPtr& call, const absl::Status& why,
                               bool retryable) {
  call->failed = true;
  RecordMade(call, false);
  const bool given_up = absl::IsDeadlineExceeded(why) || absl::IsCancelled(why);
  if (given_up) CancelRemote(call);
  call->on_reply(CallFailed(why, {call->to.name, call->spec.name, retryable}),
                 nullptr);
  MutexLock lock(mutex_);
  outgoing_.erase(DueOf(call));
  changed_.NotifyAll();
}

// For threads that must not run the caller's continuations.
void AgentCore::FailLater(const CallPtr& call, const absl::Status& why,
                          bool retryable) {
  completions_->Post(
      [this, call, why, retryable] { Fail(call, why, retryable); });
}

void AgentCore::CancelRemote(const CallPtr& call) {
  const uint64_t number = call->number;
  if (number == 0) return;
  if (call->to.name == self().name) {
    inbox_->Post([this, call, number] { OnCancel(*call->peer, number); });
    return;
  }
  transport_->Send(call->to.name,
                   {EncodeFrame(FrameKind::kCancel,
                                CancelFrame{call->to.incarnation, number}),
                    {}},
                   [](const absl::Status&) {});
}

CallPtr AgentCore::FindSentLocked(Peer& peer, uint64_t number) {
  const auto found = peers_.Sent(peer).find(number);
  return found == peers_.Sent(peer).end() ? nullptr : found->second.lock();
}

CallPtr AgentCore::FindSent(Peer& peer, uint64_t number) {
  MutexLock lock(mutex_);
  return FindSentLocked(peer, number);
}

CallPtr AgentCore::ClaimSent(Peer& peer, uint64_t number) {
  CallPtr call;
  {
    MutexLock lock(mutex_);
    call = FindSentLocked(peer, number);
    if (call == nullptr || !ClaimLocked(*call)) return nullptr;
  }
  EndWaiting(*call);
  return call;
}

void AgentCore::FailCallsTo(Peer& peer, const absl::Status& why) {
  std::vector<std::weak_ptr<OutgoingCall>> calls;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, call] : peers_.Sent(peer)) calls.push_back(call);
  }
  for (const auto& weak : calls) {
    // Claim the call here rather than in the posted task: the transport reports
    // the failure of its request on another thread, with a less useful error.
    const CallPtr call = weak.lock();
    if (call == nullptr || !Claim(call)) continue;
    completions_->Post([this, call, why] {
      ConcludeFailed(call, why, false);
      // The request may still be sent on the next connection.
      CancelRemote(call);
    });
  }
}

void AgentCore::FailAllCalls(const absl::Status& why) {
  std::vector<CallPtr> calls;
  {
    MutexLock lock(mutex_);
    for (const auto& [due, call] : outgoing_) calls.push_back(call);
  }
  for (const CallPtr& call : calls) Fail(call, why, false);
}

CallPtr BeginCall(CallSpec spec, OnReply on_reply) {
  auto call =
      std::make_shared<OutgoingCall>(std::move(spec), std::move(on_reply));
  if (auto core = call->spec.agent.lock()) {
    core->Begin(call);
  } else {
    call->done = true;
    call->on_reply(
        CallFailed(absl::FailedPreconditionError(
                       call->spec.object == nullptr
                           ? "the RRef names nothing"
                           : "the agent of the RRef has shut down"),
                   {call->spec.to.ToString(), call->spec.name, true}),
        nullptr);
  }
  return call;
}

void SendCall(const CallPtr& call, absl::FunctionRef<void(Encoder&)> encode) {
  if (auto core = call->spec.agent.lock()) core->Send(call, encode);
}

void FailCall(const CallPtr& call, absl::Status why) {
  if (auto core = call->spec.agent.lock()) core->Fail(call, why, true);
}

std::shared_ptr<Executor> CompletionsOf(const std::weak_ptr<AgentCore>& agent) {
  auto core = agent.lock();
  return core == nullptr ? nullptr : core->completions();
}

}  // namespace baton::rpc::internal
