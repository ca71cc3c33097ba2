// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/executor.h"
#include "core/tensor.h"
#include "rpc/channel_info.h"
#include "rpc/channels/tensor_channel_info.h"
#include "rpc/worker.h"

namespace baton::rpc {

// What travels between two workers: a small header, opaque to the transport,
// and tensors beside it that are never copied into it.
struct Message {
  std::string header;
  // Any strides (sent as shape and elements). Those of GPUs come to the device
  // that the receiver has declared, the others to the CPU.
  std::vector<Tensor> tensors;
  // Of a message that came: to be dropped when it has been dealt with. While
  // too much of one peer is not, the transport reads no more from it.
  std::shared_ptr<void> receipt = nullptr;
};

// Of the header and the elements.
inline uint64_t BytesOf(const Message& message) {
  uint64_t bytes = message.header.size();
  for (const Tensor& tensor : message.tensors) bytes += tensor.nbytes();
  return bytes;
}

// Receives what a transport brings. Called on the transport's threads: hand the
// work to an executor, never block. Messages of one peer come one at a time.
// Who keeps a message for long drops its receipt.
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void OnMessage(const WorkerInfo& from, Message message) = 0;
  // The connection to `peer` broke; messages in flight to and from it may be
  // lost. A later Send connects again. `why` is Unavailable, or
  // DeadlineExceeded for a peer that was silent for the transport's lease,
  // which is to be given up at once. Not called after a Shutdown.
  virtual void OnPeerLost(const WorkerInfo& peer, absl::Status why) = 0;
};

// Moves messages between the workers of one cluster over one long-lived
// connection per pair, made at the first Send to a peer or from it. Between two
// workers messages without tensors that are large, or of GPUs, arrive in order;
// the others may overtake each other, and hold up no small one. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  // Where peers reach this worker; known after construction, before Start.
  virtual std::string address() const = 0;
  // Begins to deliver to `handler`, which must outlive Shutdown.
  virtual absl::Status Start(const WorkerInfo& self,
                             MessageHandler* handler) = 0;
  // Makes `peer` known; replaces an older incarnation of the same name.
  virtual void AddPeer(const WorkerInfo& peer) = 0;
  // Forgets the peer and closes its connection, without an OnPeerLost here.
  virtual void RemovePeer(const std::string& name) = 0;
  // The same for a peer that is not there any more: not if it is connected, or
  // another incarnation of it is known.
  virtual void Forget(const WorkerInfo& peer) = 0;
  // Breaks the connection to a peer, if there is one, as a failing network
  // would: OnPeerLost on both sides, and the next Send connects again. `then`,
  // unless null, runs on a transport thread once OnPeerLost has returned here.
  virtual void Disconnect(const std::string& name, Task then) = 0;

  // Queues the message and returns without waiting for the peer, though perhaps
  // after a copy of its tensors. They may be written in place from then on; the
  // peer gets the elements that they had. `sent` runs exactly once, on a
  // transport thread: OK when the message has left this process; Unavailable
  // when it did not get out; NotFound for an unknown peer; Unauthenticated for
  // one with which this side agrees on no token or TLS; InvalidArgument for a
  // message to itself or an undefined tensor; FailedPrecondition before Start,
  // and for a peer that runs another binary. What a connection took along when
  // it broke is reported after the OnPeerLost of that connection has returned:
  // who acts on the report deals with the next connection.
  using Sent = absl::AnyInvocable<void(absl::Status)>;
  virtual void Send(const std::string& peer, Message message, Sent sent) = 0;

  // An uninitialised tensor that a later Send to this peer carries without a
  // copy if it is the only handle to all of its storage by then, in one dense
  // block; nothing of it is left here afterwards, however the Send ends.
  // Otherwise, or once the present connection has ended, it travels as any
  // other. Undefined where there is no place for such a one now. The peer could
  // see and change its elements from the start, but not move or shrink it.
  virtual Tensor EmptyFor(const std::string&, const Shape&,
                          const TensorOptions&) {
    return {};
  }

  // The channels to every peer that was ever connected; a transport that picks
  // one by the message reports each. For people: batonctl and metrics.
  virtual std::vector<ChannelInfo> Channels() const { return {}; }

  // Delivers what is queued for at most `timeout`, then breaks every
  // connection. No handler call runs or starts after it returns, and every
  // `sent` of a Send that had returned has run. Idempotent.
  virtual void Shutdown(std::chrono::milliseconds timeout) = 0;

  // By which ways tensors travel on the connections there are, beside the
  // transport's own.
  virtual std::vector<TensorChannelInfo> TensorChannels() { return {}; }
};

}  // namespace baton::rpc
