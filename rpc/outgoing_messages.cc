// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/agent_core.h"
#include "rpc/call_options.h"
#include "rpc/transports/packed.h"

// The caller's half of a call: how the request is sent and the response
// received.
namespace baton::rpc::internal {
namespace {

int64_t MicrosUntil(AgentCore::Clock::time_point deadline) {
  if (deadline == AgentCore::Clock::time_point::max()) return -1;
  return std::max<int64_t>(
      0, std::chrono::duration_cast<std::chrono::microseconds>(
             deadline - AgentCore::Clock::now())
             .count());
}

// Messages up to this size take no longer to send than to pass to another
// thread.
constexpr size_t kBriefBytes = 64 << 10;

Handle::Then SendingOf(const std::vector<Tensor>& tensors) {
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.nbytes();
    if (!tensor.device().is_cpu() || bytes > kBriefBytes)
      return Handle::Then::kMayWait;
  }
  return Handle::Then::kIsBrief;
}

}  // namespace

absl::StatusOr<std::shared_ptr<AgentCore::Outbound>> AgentCore::Encode(
    const CallPtr& call, absl::FunctionRef<void(Encoder&)> encode) {
  auto outbound = std::make_shared<Outbound>();
  CallScope* scope = call->spec.leading.scope.get();
  std::unique_ptr<Crossing> crossing;
  if (scope != nullptr) crossing = scope->BeginSend(call->to);
  Encoder encoder(crossing.get());
  RETURN_IF_ERROR(CatchErrors([&] { encode(encoder); }));
  RETURN_IF_ERROR(encoder.status());
  RequestFrame& frame = outbound->frame;
  if (scope != nullptr) {
    frame.has_scope = true;
    frame.scope = scope->FinishSend(*crossing);
  }
  frame.to = call->to.incarnation;
  frame.type = call->spec.method.type;
  frame.index = call->spec.method.index;
  frame.arguments = std::move(encoder.bytes());
  frame.within = call->within;
  if (call->spec.object != nullptr) frame.object = call->spec.object->id();
  if (call->spec.result != nullptr) {
    frame.result = call->spec.result->id();
    frame.result_fork = call->spec.result->fork();
  }
  frame.may_stay = call->spec.may_stay;
  if (call->spec.result != nullptr || frame.may_stay)
    frame.place = call->spec.to.where().ToString();
  outbound->tensors = std::move(encoder.tensors());
  outbound->handles = std::move(encoder.handles());
  return outbound;
}

void AgentCore::Send(const CallPtr& call,
                     absl::FunctionRef<void(Encoder&)> encode) {
  if (call->done) return;
  auto outbound = Encode(call, encode);
  if (!outbound.ok()) {
    Fail(call, outbound.status(), true);
    return;
  }
  std::vector<HandlePtr> needed = (*outbound)->handles;
  if (call->spec.object != nullptr) needed.push_back(call->spec.object);
  if (!AllSettled(needed))
    (*outbound)->snapshots.emplace().Take((*outbound)->tensors);
  const Handle::Then then = SendingOf((*outbound)->tensors);
  WhenAllConfirmed(
      needed,
      [core = weak_from_this(), call,
       outbound = *outbound](const absl::Status& status) {
        auto self = core.lock();
        if (self == nullptr) return;
        Snapshots::Pins pins;
        if (auto& taken = outbound->snapshots)
          pins = taken->Restore(outbound->tensors);
        if (!status.ok()) {
          self->FailLater(call, status, true);
        } else if (call->to.name == self->self().name) {
          self->TransmitLocal(call, *outbound);
        } else {
          self->Transmit(call, *outbound);
        }
      },
      then);
}

// Under one lock: who gives the worker up either finds the call among those
// sent, or has done so before this function asks for the epoch.
bool AgentCore::Register(const CallPtr& call, RequestFrame& frame,
                         std::optional<uint64_t> since,
                         const std::vector<ForkId>& forks) {
  {
    MutexLock lock(mutex_);
    if (call->done) return false;
    if (const auto next = peers_.NextCall(*call->peer, since)) {
      frame.epoch = next->epoch;
      frame.call = call->number = next->number;
      call->forks = forks;
      peers_.Sent(*call->peer)[frame.call] = call;
      return true;
    }
  }
  FailLater(call,
            absl::UnavailableError(
                absl::StrCat("worker ", call->to.name,
                             " was given up before the call to it had left")),
            true);
  return false;
}

void AgentCore::Transmit(const CallPtr& call, Outbound& outbound) {
  RequestFrame& frame = outbound.frame;
  // Read the epoch before the export: if it ends meanwhile, the grants have
  // ended with it, and the call must not be sent.
  std::optional<uint64_t> since;
  if (!outbound.handles.empty() || call->spec.result != nullptr)
    since = WithPeers(&Peers::Epoch, *call->peer);
  auto transfers =
      ownership_->Export(outbound.handles, call->to, Clock::time_point::max());
  if (!transfers.ok()) {
    FailLater(call, transfers.status(), true);
    return;
  }
  frame.transfers = *std::move(transfers);
  frame.timeout_us = MicrosUntil(call->deadline);
  std::vector<ForkId> forks;
  for (const auto& transfer : frame.transfers) forks.push_back(transfer.fork);
  if (!Register(call, frame, since, forks)) {
    ownership_->Retract(forks);
    return;
  }
  Message message{EncodeFrame(FrameKind::kRequest, frame),
                  std::move(outbound.tensors)};
  call->bytes_sent = BytesOf(message);
  if (tracer_->on()) call->sent_ns = Tracer::Now();
  std::weak_ptr<OutgoingCall> weak = call;
  transport_->Send(call->to.name, std::move(message),
                   [core = weak_from_this(), weak](const absl::Status& status) {
                     if (status.ok()) return;
                     auto self = core.lock();
                     CallPtr call = weak.lock();
                     if (self == nullptr || call == nullptr) return;
                     // Report this after the inbox has handled the loss of the
                     // connection, so that calls that are made in response are
                     // not failed by that loss.
                     self->inbox_->Post([self = self.get(), call, status] {
                       self->FailLater(call, status, true);
                     });
                   });
  // If the call failed meanwhile, its request may not have been there yet to be
  // cancelled.
  if (call->failed) CancelRemote(call);
}

absl::StatusOr<Tensor> AgentCore::EmptyFor(const Target& worker,
                                           const Shape& shape,
                                           const TensorOptions& options) {
  ASSIGN_OR_RETURN(const PeerPtr to, WithPeers(&Peers::Find, worker));
  return CatchErrors([&]() -> absl::StatusOr<Tensor> {
    Tensor shared = transport_->EmptyFor(to->name, shape, options);
    return shared.defined() ? shared : Tensor::Empty(shape, options);
  });
}

void AgentCore::TransmitLocal(const CallPtr& call, Outbound& outbound) {
  if (!Register(call, outbound.frame, {}, {})) return;
  auto incoming = std::make_shared<IncomingCall>(call->peer, self());
  incoming->local = true;
  incoming->frame = std::move(outbound.frame);
  incoming->frame.timeout_us = MicrosUntil(call->deadline);
  incoming->handles = std::move(outbound.handles);
  for (Tensor& tensor : outbound.tensors) {
    incoming->tensors.push_back(PackedCopy(std::move(tensor)));
  }
  inbox_->Post([this, incoming] { Serve(incoming); });
  if (call->failed) CancelRemote(call);
}

void AgentCore::OnResponse(const WorkerInfo& from, Message message) {
  const uint64_t bytes = BytesOf(message);
  auto frame = DecodeFrame<ResponseFrame>(std::move(message.header));
  if (!frame.ok()) {
    Drop(from, "response", frame.status());
    return;
  }
  const bool meant = frame->to == self().incarnation;
  const Peers::Observed heard =
      Hear(from, meant ? Peers::Said{.epoch = frame->epoch} : Peers::Said{});
  if (heard.stale() || !meant || heard.spoken == Peers::Spoken::kEarlier)
    return;
  // Import the transfers even if nothing waits for the response any more; the
  // unused handles then release the grants.
  auto handles = ownership_->Import(from, frame->transfers);
  if (!handles.ok() || handles->empty()) {
    CallPtr call = ClaimSent(*heard.peer, frame->call);
    if (call == nullptr) return;
    call->bytes_received = bytes;
    if (!handles.ok()) *frame = {.status = handles.status()};
    Complete(call, *std::move(frame), std::move(message.tensors), {});
    return;
  }
  CallPtr call = FindSent(*heard.peer, frame->call);
  if (call == nullptr) return;
  call->bytes_received = bytes;
  WhenAllConfirmed(*handles,
                   [core = weak_from_this(), call, frame = *std::move(frame),
                    handles = *handles, tensors = std::move(message.tensors)](
                       const absl::Status& status) {
                     auto self = core.lock();
                     if (self == nullptr) return;
                     if (!status.ok()) {
                       self->FailLater(call, status, false);
                     } else if (self->Claim(call)) {
                       self->Complete(call, frame, tensors, handles);
                     }
                   });
}

void AgentCore::Complete(const CallPtr& call, ResponseFrame frame,
                         std::vector<Tensor> tensors,
                         std::vector<HandlePtr> handles) {
  RecordMade(call, frame.status.ok());
  completions_->PostOrRunInline([this, call, frame = std::move(frame),
                                 tensors = std::move(tensors),
                                 handles = std::move(handles)]() mutable {
    Deliver(call, frame, std::move(tensors), std::move(handles));
    MutexLock lock(mutex_);
    outgoing_.erase(DueOf(call));
    changed_.NotifyAll();
  });
}

void AgentCore::Deliver(const CallPtr& call, ResponseFrame& frame,
                        std::vector<Tensor> tensors,
                        std::vector<HandlePtr> handles) {
  const CallError error{call->to.name, call->spec.name,
                        !frame.status.ok() && frame.refused};
  if (!frame.status.ok()) {
    call->on_reply(CallFailed(frame.status, error), nullptr);
    return;
  }
  CallScope* scope = call->spec.leading.scope.get();
  std::unique_ptr<Crossing> crossing;
  absl::Status status;
  if (scope != nullptr && call->spec.result == nullptr) {
    auto begun =
        CatchErrors([&] { return scope->BeginReceive(call->to, frame.scope); });
    status = begun.status();
    if (begun.ok()) crossing = *std::move(begun);
  }
  if (!status.ok()) {
    call->on_reply(CallFailed(status, error), nullptr);
    return;
  }
  Decoder decoder(std::move(frame.value), std::move(tensors),
                  std::move(handles), crossing.get());
  if (crossing != nullptr) {
    decoder.set_at_end([&] { return scope->FinishReceive(*crossing); });
  }
  call->on_reply(absl::OkStatus(), &decoder);
  if (!decoder.ok())
    call->on_reply(CallFailed(decoder.status(), error), nullptr);
}

}  // namespace baton::rpc::internal
