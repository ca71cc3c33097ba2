// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/tensor.h"
#include "rpc/channels/channel_info.h"
#include "rpc/channels/message_ring.h"

// Channels carry tensors from one process to another faster than the stream of
// a connection can: through shared memory, or by opening another process's GPU
// memory. A message refers to such a tensor by a ticket; the channel carries
// the elements. docs/transport.md describes the life of such a tensor.
namespace baton::rpc {

// The description of a tensor that a message carries beside its ticket. It has
// already been checked against the limits of messages. `bytes` follows from
// shape and dtype.
struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape = {};
  MemoryFormat format = MemoryFormat::kContiguous;
  uint64_t bytes = 0;
  bool pinned = false;  // the receiver will copy it to a GPU
};

// Stands for a tensor that a channel has taken. The other end imports the
// tensor by `ticket`, and releases `lease` when it no longer uses it.
struct Ticket {
  std::string ticket;
  uint64_t lease = 0;
};

// The result of importing a ticket.
struct Imported {
  // NOLINTNEXTLINE(google-explicit-constructor): most are just tensors
  Imported(Tensor what, Future<void> once = {})
      : tensor(std::move(what)), given(std::move(once)) {}
  Tensor tensor;
  // If valid, the elements are not there yet, and nobody may use the tensor
  // before this future is OK. It fails if they will not come because the
  // connection has ended.
  Future<void> given;
};

// What a channel may ask of its connection. Calls on a connection that has
// ended do nothing. Thread-safe. Must not be called under a lock that the
// channel's own methods take.
class ChannelPort {
 public:
  virtual ~ChannelPort() = default;
  // Delivers `payload` to the other end's OnControl, in order.
  virtual void SendControl(std::string payload) = 0;
  // Passes `lease` to the other end's OnReleased with the next message, or else
  // about `within` from now.
  virtual void Release(uint64_t lease, std::chrono::milliseconds within) = 0;
  // Reports that tensors can be sent: the other end has proved that it reads
  // what this end writes.
  virtual void Opened() = 0;
  // Reports that tensors cannot be sent for the rest of this connection. `why`
  // gives the reason in a few words.
  virtual void Failed(std::string why) = 0;
  // Reports that tensors that were sent will not arrive. The connection must
  // end, so that whatever waits for them fails; OnLost follows.
  virtual void Broke(std::string) {}
  // Hand over the rings for small messages, which then bypass the stream: the
  // ring that this end reads, and the ring that it may write. Each is called at
  // most once.
  virtual void RingFrom(RingEndIn) {}
  virtual void RingTo(RingEndOut) {}
};

// One end of a channel of one connection between two workers. Thread-safe.
class Channel {
 public:
  virtual ~Channel() = default;

  // Called once when the connection is up, on the end that dialed; the other
  // end waits for this end's first control message. Neither Start nor OnControl
  // may block, or call the port before it returns; they post their work to
  // another thread.
  virtual void Start() = 0;
  virtual void OnControl(std::string payload) = 0;

  // Takes the elements of a tensor of any strides, by a copy or by a read that
  // makes writers wait (PendingRead, OutsideRead). Returns nothing, without
  // blocking, if the channel is not open, has no room or does not support such
  // tensors; the tensor then travels by other means.
  virtual std::optional<Ticket> Export(const Tensor& tensor) = 0;
  // Returns an uninitialized CPU tensor in memory that the other end maps, so
  // that ExportInPlace can send it without a copy. Returns an undefined tensor
  // if there is no room now or the channel has no such memory. The tensor may
  // outlive the channel.
  virtual Tensor Make(const TensorSpec&) { return {}; }
  // Like Export, but consumes the tensor and leaves an undefined one. Returns
  // nothing, and leaves the tensor untouched, unless it was made by Make of
  // this channel and is the only handle to its storage and covers all of it
  // without gaps.
  virtual std::optional<Ticket> ExportInPlace(Tensor&) { return std::nullopt; }
  // Called once for each lease that was not withdrawn, when its message is
  // sent. If the returned future is valid, the channel reads the tensor until
  // the future is OK; the future fails at OnLost at the latest.
  virtual Future<void> Send(uint64_t) { return {}; }
  // Takes back a lease whose message was never sent.
  virtual void Withdraw(uint64_t lease) = 0;
  // Returns the tensor of a ticket; the receiver may write it. Its lease is
  // released when its last view is gone. InvalidArgument for a ticket that the
  // other end cannot have issued.
  virtual absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                          const std::string& ticket) = 0;
  // InvalidArgument for a lease that the peer does not hold.
  virtual absl::Status OnReleased(uint64_t lease) = 0;

  // Called at each beat of the connection (rpc/transports/failure_detector.h).
  // Processes that observe each other by other means need no BEAT frames.
  struct Signs {
    bool alive = false;  // the peer has beaten since the last call
    bool seen = false;   // the peer observes this end's beats
  };
  virtual Signs Beat() { return {}; }

  // Called when the connection has ended, perhaps together with the other
  // process. Imported tensors stay valid for as long as they are used.
  virtual void OnLost() = 0;

  // Leaves peer, name, open and, where the caller knows better, why_not to the
  // caller.
  virtual TensorChannelInfo info() const = 0;
};

// A kind of channel that a worker offers to its peers. Thread-safe.
class ChannelKind {
 public:
  virtual ~ChannelKind() = default;
  virtual uint32_t id() const = 0;       // on the wire; see rpc/wire.proto
  virtual std::string name() const = 0;  // for people
  // The id of a channel that is preferred where a pair of workers has both;
  // this one then is not used for that pair.
  virtual std::optional<uint32_t> better() const { return std::nullopt; }
  // Returns what the other end must know to open the channel, made anew for
  // each connection, or an error that says why this worker has no such channel.
  virtual absl::StatusOr<std::string> Offer() = 0;
  // Makes this worker's end for a new connection. An error says why this pair
  // of workers cannot have one.
  struct Ends {
    bool dialed = false;
    std::string ours = {};  // as offered
    std::string theirs = {};
  };
  virtual absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) = 0;
  // Called once all connections are closed. Everything that was sent has been
  // reported when this returns, and nothing is reported later.
  virtual void Stop() {}
};

// Returns the tensor of spec's dtype, shape and format whose elements lie from
// the beginning of `storage` without gaps. Throws if it does not fit.
Tensor DenseView(std::shared_ptr<Storage> storage, const TensorSpec& spec);

// Returns InvalidArgument unless these bytes of a tensor are valid elements:
// those of a bool may only be 0 and 1, as reading another one would be
// undefined behaviour.
absl::Status CheckElements(DType dtype, std::span<const std::byte> bytes);

// Returns the spec of `tensor` once its elements are laid out without gaps.
TensorSpec SpecOf(const Tensor& tensor);

}  // namespace baton::rpc
