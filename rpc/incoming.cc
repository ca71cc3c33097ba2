// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "rpc/agent_core.h"
#include "rpc/shown_name.h"

// The callee's half of a call: how the request is received and its handler run.
namespace baton::rpc::internal {
namespace {

size_t BytesOf(const IncomingCall& call) {
  size_t bytes = call.frame.arguments.size() + call.frame.scope.size() +
                 call.within.size() * sizeof(HoldId);
  for (const Tensor& tensor : call.tensors) bytes += tensor.nbytes();
  return bytes;
}

constexpr const char* kSystemNames[] = {"RRef::Fetch", "RRef::Ready"};

}  // namespace

void AgentCore::OnRequest(const WorkerInfo& from, Message message) {
  const uint64_t bytes = BytesOf(message);
  auto frame = DecodeFrame<RequestFrame>(std::move(message.header));
  if (!frame.ok()) {
    Drop(from, "request", frame.status());
    return;
  }
  const bool meant = frame->to == 0 || frame->to == self().incarnation;
  const Peers::Observed heard = Hear(
      from, meant ? Peers::Said{frame->epoch, frame->call} : Peers::Said{});
  if (heard.stale() || heard.again) return;
  auto call = std::make_shared<IncomingCall>(heard.peer, from);
  call->frame = *std::move(frame);
  call->tensors = std::move(message.tensors);
  call->bytes_received = bytes;
  if (!meant) {
    Respond(call, absl::UnavailableError(absl::StrCat(
                      "worker ", self().name,
                      " was started again; what it had before is lost")));
    return;
  }
  if (heard.spoken == Peers::Spoken::kEarlier) {
    Respond(call, absl::UnavailableError(absl::StrCat(
                      "worker ", self().name, " has given up worker ",
                      from.name, ", and with it what it asked before")));
    return;
  }
  Serve(call);
}

// Runs on the inbox, so that creations are acknowledged and cancellations find
// the call even if all handler threads are busy.
void AgentCore::Serve(const IncomingPtr& call) {
  call->started = Clock::now();
  call->caller = call->peer->name;
  call->within = std::move(call->frame.within);
  call->context->agent = agent_;
  call->context->holds = call->within;
  if (call->frame.timeout_us >= 0) {
    call->deadline =
        call->started + std::min<std::chrono::microseconds>(
                            std::chrono::microseconds(call->frame.timeout_us),
                            baton::internal::kLongestWait);
  }
  call->context->deadline = call->deadline;
  if (absl::Status status = Prepare(call); !status.ok()) {
    call->refused = true;
    Answer(call, std::move(status));
    return;
  }
  WhenAllConfirmed(call->handles,
                   [core = weak_from_this(), call](const absl::Status& status) {
                     auto self = core.lock();
                     if (self == nullptr) return;
                     if (status.ok()) {
                       self->ResolveAndRun(call);
                     } else {
                       self->Answer(call, status);
                     }
                   });
}

absl::Status AgentCore::Prepare(const IncomingPtr& call) {
  const RequestFrame& frame = call->frame;
  if (!call->local) {
    // Import even if the call fails below; the handles then release the grants.
    ASSIGN_OR_RETURN(call->handles,
                     ownership_->Import(call->from, frame.transfers));
  }
  RETURN_IF_ERROR(FindHandler(call));
  if (!call->local) {
    ASSIGN_OR_RETURN(call->ticket,
                     call->peer->account->TakeCall(BytesOf(*call)));
  }
  {
    MutexLock lock(mutex_);
    if (stopped_) return StoppedStatus();
    if (incoming_.size() >= options_.max_incoming_calls) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the worker has ", incoming_.size(),
          " calls waiting, of all that may (--max_calls); try again later"));
    }
    peers_.Served(*call->peer)[frame.call] = call;
    call->order = ++last_order_;
    incoming_.emplace(DueOf(call), call);
    AwaitDeadlineLocked(call->deadline);
  }
  if (frame.result.number == 0 || call->local) return absl::OkStatus();
  RETURN_IF_ERROR(ownership_->BeginCreation(
      frame.result, frame.result_fork, call->from, call->name, frame.place));
  call->creates = true;
  SendControl(call->from,
              {ControlKind::kCreated, frame.result, frame.result_fork},
              nullptr);
  return absl::OkStatus();
}

absl::Status AgentCore::FindHandler(const IncomingPtr& call) {
  const RequestFrame& frame = call->frame;
  if (frame.type == kSystemMethods) {
    if (frame.index > kReady || frame.object.number == 0) {
      return absl::UnimplementedError("no such system method");
    }
    call->name = kSystemNames[frame.index];
    call->method = kSystemNames[frame.index];
    call->access = Access::kShared;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Registry::Method* method,
                   registry_.Find({frame.type, frame.index}));
  if (method->needs_object != (frame.object.number != 0)) {
    return absl::InvalidArgumentError(
        "a method without an object or a function with one");
  }
  call->name = method->name;
  call->handler = method->handler;
  call->method = call->context->method = method->name;
  call->access = method->access;
  return absl::OkStatus();
}

void AgentCore::ResolveAndRun(const IncomingPtr& call) {
  if (call->frame.object.number == 0) {
    workers_->PostOrRunInline([this, call] { Run(call, {}); });
    return;
  }
  // A call that waits for its object must still end when it is cancelled.
  call->context->cancel.token().OnCancel(
      [core = weak_from_this(),
       weak = std::weak_ptr<IncomingCall>(call)](const absl::Status& why) {
        auto self = core.lock();
        IncomingPtr call = weak.lock();
        if (self == nullptr || call == nullptr) return;
        if (!call->running.exchange(true)) self->Answer(call, why);
      });
  ownership_->Resolve(
      call->frame.object,
      [core = weak_from_this(), call](absl::StatusOr<OwnedValue> object) {
        auto self = core.lock();
        if (self == nullptr) return;
        if (object.ok()) {
          self->Enter(call, *object);
        } else {
          self->workers_->PostOrRunInline(
              [self = self.get(), call, status = object.status()] {
                self->Answer(call, status);
              });
        }
      });
}

void AgentCore::Run(const IncomingPtr& call, const AnyValue& object) {
  absl::Status status;
  // Otherwise a cancellation answers it, and may be doing so now.
  if (!call->running.exchange(true)) status = RunUnlessEnded(call, object);
  if (call->held != nullptr) std::exchange(call->held, nullptr)->Release(*call);
  if (!status.ok()) Answer(call, std::move(status));
}

absl::Status AgentCore::RunUnlessEnded(const IncomingPtr& call,
                                       const AnyValue& object) {
  if (tracer_->on()) call->running_ns = Tracer::Now();
  absl::Status status = call->context->cancel.token().reason();
  if (!call->replied && call->ticket != nullptr)
    status.Update(call->ticket->MayRun());
  if (!status.ok()) {
    call->refused = true;
    return status;
  }
  if (call->replied) return absl::OkStatus();
  return CatchErrors([&] { return RunHandler(call, object); });
}

// The handler answers by itself. An error that is returned here occurred before
// the handler ran.
absl::Status AgentCore::RunHandler(const IncomingPtr& call,
                                   const AnyValue& object) {
  const RequestFrame& frame = call->frame;
  std::unique_ptr<Crossing> crossing;
  if (frame.has_scope) {
    std::shared_ptr<CallScopeFactory> factory;
    {
      MutexLock lock(mutex_);
      factory = scope_factory_;
    }
    if (factory == nullptr) {
      return absl::FailedPreconditionError(
          "the call carries a scope and no scope factory is set on this "
          "worker; call dist::Attach(agent)");
    }
    ASSIGN_OR_RETURN(call->context->scope,
                     factory->Open(call->from, frame.scope));
    ASSIGN_OR_RETURN(
        crossing, call->context->scope->BeginReceive(call->from, frame.scope));
  }
  Decoder decoder(std::move(call->frame.arguments), std::move(call->tensors),
                  std::move(call->handles), crossing.get());
  if (crossing != nullptr) {
    decoder.set_at_end(
        [&] { return call->context->scope->FinishReceive(*crossing); });
  }
  if (call->handler == nullptr) {
    RETURN_IF_ERROR(decoder.Finish());
    if (frame.index == kFetch && object.type->encode == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a ", ShownName(object.type->name()), " cannot be copied"));
    }
    Answer(call, frame.index == kFetch ? object : AnyValue{});
    return absl::OkStatus();
  }
  if (object.value != nullptr && object.type->id != frame.type) {
    return absl::InvalidArgumentError(
        absl::StrCat("the object is a ", ShownName(object.type->name())));
  }
  CallContext context(call->context);
  const HoldsOfThread holds(call->context->holds);
  // The handler may answer after this agent is destroyed.
  call->handler(context, decoder, object.value.get(),
                [core = weak_from_this(), call,
                 kept = object.value](absl::StatusOr<AnyValue> result) {
                  auto self = core.lock();
                  if (self != nullptr) self->Answer(call, std::move(result));
                });
  return absl::OkStatus();
}

void AgentCore::OnCancel(Peer& from, uint64_t number) {
  IncomingPtr call;
  {
    MutexLock lock(mutex_);
    const auto found = peers_.Served(from).find(number);
    if (found != peers_.Served(from).end()) call = found->second.lock();
    // Mark the number as seen: if the request of another worker arrives after
    // this cancellation, it must not be served.
    if (call == nullptr && from.name != self().name)
      (void)peers_.FirstTime(from, number);
  }
  if (call == nullptr) return;
  completions_->Post([call] {
    call->context->cancel.Cancel(
        absl::CancelledError("the caller has given up"));
  });
}

void AgentCore::CancelCallsFrom(Peer& peer, const absl::Status& why) {
  std::vector<std::weak_ptr<IncomingCall>> calls;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, call] : peers_.Served(peer))
      calls.push_back(call);
  }
  if (calls.empty()) return;
  completions_->Post([calls = std::move(calls), why] {
    for (const auto& weak : calls) {
      if (const IncomingPtr call = weak.lock())
        call->context->cancel.Cancel(why);
    }
  });
}

}  // namespace baton::rpc::internal
