// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "rpc/agent_core.h"
#include "rpc/transports/packed.h"

// The callee's half of a call: how its result is sent.
namespace baton::rpc::internal {
namespace {

// The receiver of a response that has not confirmed its RRefs after this time
// is asked whether they arrived.
constexpr std::chrono::seconds kProbeResponse{30};

// Results that are longer stay here if the caller allows it: the second call,
// which fetches them, costs little compared with their bytes.
constexpr int64_t kLongResult = 64 << 10;

bool IsLong(const AnyValue& value) {
  return value.type->bytes != nullptr &&
         value.type->bytes(value.value.get()) > kLongResult;
}

}  // namespace

// The first answer counts, whether it comes from the handler or from an earlier
// failure.
void AgentCore::Answer(const IncomingPtr& call,
                       absl::StatusOr<AnyValue> result) {
  if (call->replied.exchange(true)) return;
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
  frame.epoch = EndIncoming(call);
  const bool ok = frame.status.ok();
  if (call->local) {
    RecordServed(call, ok, 0);
    for (Tensor& tensor : tensors) tensor = PackedCopy(std::move(tensor));
    if (CallPtr outgoing = ClaimSent(*call->peer, frame.call)) {
      Complete(outgoing, std::move(frame), std::move(tensors),
               std::move(handles));
    }
    return;
  }
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
  PeerAccount::Ticket ticket = call->ticket != nullptr ? std::move(call->ticket)
                                                       : TakeReply(*call->peer);
  if (ticket == nullptr) return;
  ticket->Answer(bytes);
  transport_->Send(
      call->peer->name, std::move(message),
      [core = weak_from_this(), to = call->peer, failed,
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
        self->transport_->Send(to->name,
                               {EncodeFrame(FrameKind::kResponse, answer), {}},
                               [](const absl::Status&) {});
      });
}

uint64_t AgentCore::EndIncoming(const IncomingPtr& call) {
  MutexLock lock(mutex_);
  // A call that was refused is not among them.
  if (incoming_.erase(DueOf(call)) > 0)
    peers_.Served(*call->peer).erase(call->frame.call);
  changed_.NotifyAll();
  return peers_.Epoch(*call->peer);
}

// Disconnects a peer that sends but does not read the refusals and
// acknowledgements of what it sends.
PeerAccount::Ticket AgentCore::TakeReply(const Peer& peer) {
  bool first = false;
  PeerAccount::Ticket ticket = peer.account->TakeReply(first);
  // A later incarnation has the name, and the connection, of a removed one.
  if (first && !WithPeers(&Peers::IsRemoved, peer)) {
    LogWarning("ended the connection to worker ", peer.name, ": ",
               options_.max_replies_per_peer, " answers to it have not left");
    transport_->Disconnect(peer.name, nullptr);
  }
  return ticket;
}

}  // namespace baton::rpc::internal
