// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "rpc/agent_core.h"
#include "rpc/transports/packed.h"

// The callee's half of a call.
namespace baton::rpc::internal {
namespace {

// The receiver of a response that has not confirmed its RRefs after this time
// is asked whether they arrived.
constexpr std::chrono::seconds kProbeResponse{30};

size_t BytesOf(const IncomingCall& call) {
  size_t bytes = call.frame.arguments.size() + call.frame.scope.size() +
                 call.within.size() * sizeof(HoldId);
  for (const Tensor& tensor : call.tensors) bytes += tensor.nbytes();
  return bytes;
}

// Results that are longer stay here if the caller allows it: the second call,
// which fetches them, costs little compared with their bytes.
constexpr int64_t kLongResult = 64 << 10;

bool IsLong(const AnyValue& value) {
  return value.type->bytes != nullptr &&
         value.type->bytes(value.value.get()) > kLongResult;
}

constexpr const char* kSystemNames[] = {"RRef::Fetch", "RRef::Ready"};

}  // namespace

void AgentCore::OnRequest(const WorkerInfo& from, Message message) {
  const uint64_t bytes = BytesOf(message);
  auto frame = DecodeFrame<RequestFrame>(std::move(message.header));
  if (!frame.ok()) {
    LogWarning("dropped a request of worker ", from.name, ": ",
               frame.status().ToString());
    return;
  }
  auto call = std::make_shared<IncomingCall>();
  call->from = from;
  call->frame = *std::move(frame);
  call->tensors = std::move(message.tensors);
  call->bytes_received = bytes;
  if (call->frame.to != 0 && call->frame.to != self().incarnation) {
    Respond(call, absl::UnavailableError(absl::StrCat(
                      "worker ", self().name,
                      " was started again; what it had before is lost")));
    return;
  }
  if (!IsOfThisEpoch(from, call->frame.epoch)) {
    Respond(call, absl::UnavailableError(absl::StrCat(
                      "worker ", self().name, " has given up worker ",
                      from.name, ", and with it what it asked before")));
    return;
  }
  if (!peers_.FirstTime(from.name, call->frame.call)) return;
  Serve(call);
}

// Runs on the inbox, so that creations are acknowledged and cancellations find
// the call even if all handler threads are busy.
void AgentCore::Serve(const IncomingPtr& call) {
  call->started = Clock::now();
  call->caller = call->from.name;
  call->within = std::move(call->frame.within);
  call->context = std::make_shared<CallContext::State>();
  call->context->caller = call->from;
  call->context->agent = agent_;
  call->context->holds = call->within;
  if (absl::Status status = Prepare(call); !status.ok()) {
    call->refused = true;
    Answer(call, std::move(status));
    return;
  }
  if (call->frame.timeout_us >= 0) {
    call->context->deadline =
        call->started + std::min<std::chrono::microseconds>(
                            std::chrono::microseconds(call->frame.timeout_us),
                            baton::internal::kLongestWait);
    std::weak_ptr<IncomingCall> weak = call;
    call->timer = timer_.At(call->context->deadline, [this, weak] {
      completions_->Post([weak] {
        if (IncomingPtr call = weak.lock()) {
          call->context->cancel.Cancel(
              absl::DeadlineExceededError("the call's deadline has passed"));
        }
      });
    });
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
                     quota_->Take(call->from.name, BytesOf(*call)));
  }
  {
    MutexLock lock(mutex_);
    if (stopped_) return StoppedStatus();
    if (incoming_.size() >= options_.max_incoming_calls) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the worker has ", incoming_.size(),
          " calls waiting, of all that may (--max_calls); try again later"));
    }
    incoming_[{call->from.name, frame.call}] = call;
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
        if (self != nullptr && call != nullptr && !call->running) {
          self->Answer(call, why);
        }
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
  call->running = true;
  if (tracer_->on()) call->running_ns = Tracer::Now();
  absl::Status status = call->context->cancel.token().reason();
  if (!call->replied && call->ticket != nullptr)
    status.Update(call->ticket->MayRun());
  if (!status.ok()) call->refused = true;
  if (!call->replied && status.ok()) {
    status = CatchErrors([&] { return RunHandler(call, object); });
  }
  if (call->held != nullptr) std::exchange(call->held, nullptr)->Release(*call);
  if (!status.ok()) Answer(call, std::move(status));
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
      return absl::FailedPreconditionError(
          absl::StrCat("a ", object.type->name(), " cannot be copied"));
    }
    Answer(call, frame.index == kFetch ? object : AnyValue{});
    return absl::OkStatus();
  }
  if (object.value != nullptr && object.type->id != frame.type) {
    return absl::InvalidArgumentError(
        absl::StrCat("the object is a ", object.type->name()));
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

// The first answer counts, whether it comes from the handler or from an earlier
// failure.
void AgentCore::Answer(const IncomingPtr& call,
                       absl::StatusOr<AnyValue> result) {
  if (call->replied.exchange(true)) return;
  timer_.Cancel(call->timer);
  ++calls_served_;
  if (call->frame.result.number != 0) {
    // A call that failed before it had begun the creation must not finish
    // another call's creation with the same id.
    if (call->local || call->creates) {
      // Fetches of the object will report which call failed.
      absl::StatusOr<AnyValue> made = result;
      if (!made.ok()) made = Annotate(made.status(), call->name);
      ownership_->FinishCreation(call->frame.result, std::move(made));
    }
    if (result.ok()) result = AnyValue{};
  }
  Respond(call, std::move(result));
}

absl::Status AgentCore::EncodeResult(const IncomingCall& call,
                                     const AnyValue& result, Encoder& encoder) {
  const bool stays = call.frame.may_stay && !call.local && IsLong(result);
  if (call.frame.may_stay) encoder.Put(stays);  // a ValueOrRRef
  if (stays) {
    const std::string& place = call.frame.place;
    encoder.PutHandle(
        ownership_->Own(result, place.empty() ? call.name : place));
  } else {
    result.type->encode(encoder, result.value.get());
  }
  return encoder.status();
}

void AgentCore::Respond(const IncomingPtr& call,
                        absl::StatusOr<AnyValue> result) {
  ResponseFrame frame;
  frame.to = call->from.incarnation;
  frame.call = call->frame.call;
  frame.status = result.status();
  frame.refused = call->refused;
  CallScope* scope = nullptr;
  std::unique_ptr<Crossing> crossing;
  if (result.ok() && call->frame.result.number == 0) {
    scope = call->context->scope.get();
  }
  if (scope != nullptr) crossing = scope->BeginSend(call->from);
  Encoder encoder(crossing.get());
  if (result.ok()) {
    frame.status = result->type->encode == nullptr
                       ? absl::InternalError("the result has no codec")
                       : CatchErrors([&] {
                           return EncodeResult(*call, *result, encoder);
                         });
  }
  if (scope != nullptr && frame.status.ok()) {
    frame.scope = scope->FinishSend(*crossing);
  }
  // Drop these, so that the message has the only handles to tensors that
  // nothing else keeps.
  crossing = nullptr;
  if (result.ok()) result = AnyValue{};
  if (!frame.status.ok()) {
    SendResponse(call, std::move(frame), {}, {});
    return;
  }
  frame.value = std::move(encoder.bytes());
  std::vector<HandlePtr> handles = std::move(encoder.handles());
  if (handles.empty()) {
    SendResponse(call, std::move(frame), std::move(encoder.tensors()), {});
    return;
  }
  Snapshots snapshots;
  if (!AllSettled(handles)) snapshots.Take(encoder.tensors());
  WhenAllConfirmed(
      handles,
      [core = weak_from_this(), call, frame = std::move(frame),
       tensors = std::move(encoder.tensors()), snapshots = std::move(snapshots),
       handles](const absl::Status& status) mutable {
        auto self = core.lock();
        if (self == nullptr) return;
        ResponseFrame response = frame;
        if (!status.ok()) {
          response = {.to = frame.to, .call = frame.call, .status = status};
          self->SendResponse(call, std::move(response), {}, {});
        } else {
          const auto pins = snapshots.Restore(tensors);
          self->SendResponse(call, std::move(response), tensors, handles);
        }
      });
}

void AgentCore::SendResponse(const IncomingPtr& call, ResponseFrame frame,
                             std::vector<Tensor> tensors,
                             std::vector<HandlePtr> handles) {
  EndIncoming(call);
  const bool ok = frame.status.ok();
  if (call->local) {
    RecordServed(call, ok, 0);
    for (Tensor& tensor : tensors) tensor = PackedCopy(std::move(tensor));
    if (CallPtr outgoing = FindSent(self().name, frame.call)) {
      Complete(outgoing, std::move(frame), std::move(tensors),
               std::move(handles));
    }
    return;
  }
  frame.epoch = peers_.Epoch(call->from.name);
  const ResponseFrame failed{
      .to = frame.to, .epoch = frame.epoch, .call = frame.call};
  auto transfers =
      ownership_->Export(handles, call->from, Clock::now() + kProbeResponse);
  if (transfers.ok()) {
    frame.transfers = *std::move(transfers);
  } else {
    frame = failed;
    frame.status = transfers.status();
    tensors.clear();
  }
  Message message{EncodeFrame(FrameKind::kResponse, frame), std::move(tensors)};
  const uint64_t bytes = BytesOf(message);
  RecordServed(call, ok, bytes);
  CallQuota::Ticket ticket = call->ticket != nullptr
                                 ? std::move(call->ticket)
                                 : TakeReply(call->from.name);
  if (ticket == nullptr) return;
  ticket->Answer(bytes);
  Transmit(
      call->from.name, std::move(message),
      [core = weak_from_this(), to = call->from.name, failed,
       ticket = std::move(ticket)](const absl::Status& status) mutable {
        ticket = nullptr;
        // The message itself could not be sent, so answer with an error. A
        // broken connection needs no answer: the caller's transport reports it.
        auto self = core.lock();
        if (self == nullptr || status.ok() || absl::IsUnavailable(status)) {
          return;
        }
        ResponseFrame answer = failed;
        answer.status = status;
        self->Transmit(to, {EncodeFrame(FrameKind::kResponse, answer), {}},
                       [](const absl::Status&) {});
      });
}

void AgentCore::EndIncoming(const IncomingPtr& call) {
  MutexLock lock(mutex_);
  auto found = incoming_.find({call->from.name, call->frame.call});
  if (found != incoming_.end() && found->second == call) {
    incoming_.erase(found);
  }
  changed_.NotifyAll();
}

// Disconnects a peer that sends but does not read the refusals and
// acknowledgements of what it sends.
CallQuota::Ticket AgentCore::TakeReply(const std::string& peer) {
  bool first = false;
  CallQuota::Ticket ticket = quota_->TakeReply(peer, first);
  if (first) {
    LogWarning("ended the connection to worker ", peer, ": ",
               options_.max_replies_per_peer, " answers to it have not left");
    transport_->Disconnect(peer, nullptr);
  }
  return ticket;
}

void AgentCore::OnCancel(const WorkerInfo& from, uint64_t number) {
  IncomingPtr call;
  {
    MutexLock lock(mutex_);
    auto found = incoming_.find({from.name, number});
    if (found != incoming_.end()) call = found->second;
  }
  if (call == nullptr) {
    // Mark the number as seen: if the request arrives after this cancellation,
    // it must not be served.
    (void)peers_.FirstTime(from.name, number);
    return;
  }
  completions_->Post([call] {
    call->context->cancel.Cancel(
        absl::CancelledError("the caller has given up"));
  });
}

void AgentCore::CancelCallsFrom(const WorkerInfo& peer,
                                const absl::Status& why) {
  std::vector<IncomingPtr> calls;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, call] : incoming_) {
      if (IsIncarnation(call->from, peer)) calls.push_back(call);
    }
  }
  if (calls.empty()) return;
  completions_->Post([calls = std::move(calls), why] {
    for (const IncomingPtr& call : calls) call->context->cancel.Cancel(why);
  });
}

}  // namespace baton::rpc::internal
