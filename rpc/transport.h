// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/executor.h"
#include "core/tensor.h"
#include "rpc/channels/channel_info.h"
#include "rpc/worker.h"

namespace baton::rpc {

// A message between two workers: a small header, which is opaque to the
// transport, and tensors beside it, which are never copied into the header.
struct Message {
  std::string header;
  // May have any strides (sent as shape and elements). GPU tensors arrive on
  // the device that the receiver has declared, others on the CPU.
  std::vector<Tensor> tensors;
  // Set in received messages; to be dropped when the message has been handled.
  // While too many bytes from one peer are not handled, the transport stops
  // reading from it.
  std::shared_ptr<void> receipt = nullptr;
};

// The size of the header and of the tensors' elements.
inline uint64_t BytesOf(const Message& message) {
  uint64_t bytes = message.header.size();
  for (const Tensor& tensor : message.tensors) bytes += tensor.nbytes();
  return bytes;
}

// Receives the messages of a transport. It is called on the transport's threads
// and must not block: pass the work to an executor. Messages of one peer come
// one at a time. A handler that keeps a message for long must drop its receipt.
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void OnMessage(const WorkerInfo& from, Message message) = 0;
  // The connection to `peer` broke; messages in flight in both directions may
  // be lost. A later Send connects again. `why` is Unavailable, or
  // DeadlineExceeded if the peer was silent for the transport's lease, in which
  // case it should be given up at once. Not called after Shutdown.
  virtual void OnPeerLost(const WorkerInfo& peer, absl::Status why) = 0;
};

// Moves messages between the workers of one cluster over one long-lived
// connection per pair, which the first Send in either direction makes. Messages
// between two workers arrive in order, except those with large or GPU tensors,
// which may be reordered and do not delay small messages. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  // The address at which peers reach this worker. Known before Start.
  virtual std::string address() const = 0;
  // Begins to deliver messages to `handler`, which must live until Shutdown has
  // returned.
  virtual absl::Status Start(const WorkerInfo& self,
                             MessageHandler* handler) = 0;
  // Makes `peer` known. Replaces an older incarnation of the same name.
  virtual void AddPeer(const WorkerInfo& peer) = 0;
  // Forgets the peer and closes its connection without calling OnPeerLost here.
  virtual void RemovePeer(const std::string& name) = 0;
  // Forgets a peer that is gone. Does nothing if it is connected or another
  // incarnation of it is known.
  virtual void Forget(const WorkerInfo& peer) = 0;
  // Breaks the connection to a peer, if there is one, as a network failure
  // would: OnPeerLost is called on both sides, and the next Send connects
  // again. If `then` is not null, it runs on a transport thread once OnPeerLost
  // has returned here.
  virtual void Disconnect(const std::string& name, Task then) = 0;

  // Queues the message and returns without waiting for the peer, though it may
  // copy the tensors first. After it returns the tensors may be written in
  // place; the peer still gets their old elements. `sent` runs exactly once, on
  // a transport thread: with OK when the message has left this process;
  // Unavailable if it was not sent; NotFound for an unknown peer;
  // Unauthenticated if the two sides do not agree on a token or TLS;
  // InvalidArgument for a message to itself or an undefined tensor;
  // FailedPrecondition before Start and for a peer that runs another binary.
  // Messages that were lost with a connection are reported after the OnPeerLost
  // of that connection has returned, so that a new Send made in `sent` uses the
  // next connection.
  using Sent = absl::AnyInvocable<void(absl::Status)>;
  virtual void Send(const std::string& peer, Message message, Sent sent) = 0;

  // Returns an uninitialized tensor that a later Send to this peer carries
  // without a copy, if by then it is the only handle to its storage and covers
  // all of it densely. However the Send ends, the memory is then no longer in
  // use here. Otherwise, or once the current connection has ended, it is sent
  // like any other tensor. Returns an undefined tensor if there is no memory
  // for one now. The peer can see and change its elements from the start, but
  // cannot move or shrink it.
  virtual Tensor EmptyFor(const std::string&, const Shape&,
                          const TensorOptions&) {
    return {};
  }

  // The channels to every peer that was ever connected; a transport that
  // chooses a channel per message reports each. For display by batonctl and
  // metrics.
  virtual std::vector<ChannelInfo> Channels() const { return {}; }

  // Delivers queued messages for at most `timeout`, then breaks every
  // connection. After it returns no handler call runs or starts, and the `sent`
  // of every Send that had returned has run. Idempotent.
  virtual void Shutdown(std::chrono::milliseconds timeout) = 0;

  // The tensor channels of the existing connections, in addition to the
  // transport's own.
  virtual std::vector<TensorChannelInfo> TensorChannels() { return {}; }
};

}  // namespace baton::rpc
