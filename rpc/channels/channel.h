// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/tensor.h"
#include "rpc/channels/ring_ends.h"
#include "rpc/channels/tensor_channel_info.h"

// Ways for tensors from one process to another that are better than the streams
// of a connection: shared memory, a GPU's memory opened by another process. A
// message names such a tensor by a ticket; its elements travel with the
// channel. docs/transport.md has the life of one.
namespace baton::rpc {

// What a message says of a tensor beside its ticket; checked against the limits
// of messages already. `bytes` is what shape and dtype come to.
struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape = {};
  MemoryFormat format = MemoryFormat::kContiguous;
  uint64_t bytes = 0;
  bool pinned = false;  // it goes on to a GPU here
};

// A tensor that a channel has taken: the other end imports it by `ticket` and
// gives `lease` back when it is done with it.
struct Ticket {
  std::string ticket;
  uint64_t lease = 0;
};

// What a ticket stands for.
struct Imported {
  // NOLINTNEXTLINE(google-explicit-constructor): most are just tensors
  Imported(Tensor what, Future<void> once = {})
      : tensor(std::move(what)), given(std::move(once)) {}
  Tensor tensor;
  // Where it is valid, nothing writes the tensor yet: nobody may use it before
  // this is OK. An error where that will not be, as the connection has ended.
  Future<void> given;
};

// What a channel may ask of the connection that it belongs to. Calls on a
// connection that has ended do nothing. Thread-safe; not under a lock that the
// channel's own methods take.
class ChannelPort {
 public:
  virtual ~ChannelPort() = default;
  // Travels to the other end's OnControl, in order, on the control stream.
  virtual void SendControl(std::string payload) = 0;
  // Tells the other end's OnReleased, together with others, within about 1 ms.
  virtual void Release(uint64_t lease) = 0;
  // Tensors can be sent: the other end has proved that it gets what is written.
  virtual void Opened() = 0;
  // They cannot, for the rest of this connection: why, in a few words.
  virtual void Failed(std::string why) = 0;
  // Tensors that were sent will not come: the connection must end, so that what
  // waits for them fails. OnLost follows.
  virtual void Broke(std::string) {}
  // Small messages may go beside the streams, too: here is where they come, if
  // the other end does so, and where they may go. Each at most once.
  virtual void RingFrom(RingEndIn) {}
  virtual void RingTo(RingEndOut) {}
};

// One end of a channel of one connection between two workers. Thread-safe.
class Channel {
 public:
  virtual ~Channel() = default;

  // The connection is there. Called once, on the end that dialed; the other end
  // waits for what this one says. Neither this nor OnControl may wait, or speak
  // to the port before it returns: what has to be done goes to another thread.
  virtual void Start() = 0;
  virtual void OnControl(std::string payload) = 0;

  // Takes the elements of a tensor of any strides, by a copy or by a read that
  // holds writers off (PendingRead, OutsideRead). Nothing when the channel
  // is not open, has no room or does not take such tensors: they then travel
  // otherwise, at once.
  virtual std::optional<Ticket> Export(const Tensor& tensor) = 0;
  // A tensor of the CPU, uninitialised, that the other end sees where it lies:
  // ExportInPlace takes it without a copy. Undefined when there is no room for
  // one now, or the channel has no such tensors. It may outlive the channel.
  virtual Tensor Make(const TensorSpec&) { return {}; }
  // As Export, but takes the tensor itself and leaves an undefined one.
  // Nothing, and the tensor untouched, unless it was made here and is the only
  // handle to all of its storage, without gaps.
  virtual std::optional<Ticket> ExportInPlace(Tensor&) { return std::nullopt; }
  // Its message leaves now; called once, with what was not withdrawn. Where
  // valid, the tensor is not read any more when this is OK. It fails by OnLost
  // at the latest.
  virtual Future<void> Send(uint64_t) { return {}; }
  // A tensor that nobody was told of: its message never left.
  virtual void Withdraw(uint64_t lease) = 0;
  // The tensor of a ticket, which may be written by whoever gets it. Its lease
  // is given back when its last view is gone. InvalidArgument for what the
  // other end cannot have exported.
  virtual absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                          const std::string& ticket) = 0;
  // InvalidArgument for a lease that is not out.
  virtual absl::Status OnReleased(uint64_t lease) = 0;

  // One beat of the connection (rpc/transports/failure_detector.h), which may
  // need no message where both processes see each other by other means.
  struct Signs {
    bool alive = false;  // the other one has beaten since the last call
    bool seen = false;   // it sees this one beat
  };
  virtual Signs Beat() { return {}; }

  // The connection has ended, perhaps with the other process. What was imported
  // stays valid for as long as it is used.
  virtual void OnLost() = 0;

  // Without peer, name and state.
  virtual TensorChannelInfo info() const = 0;
};

// What a worker can offer to others. Thread-safe.
class ChannelKind {
 public:
  virtual ~ChannelKind() = default;
  virtual uint32_t id() const = 0;       // on the wire; see rpc/wire.proto
  virtual std::string name() const = 0;  // for people
  // The channel that serves a pair of workers better, if they have it: this one
  // is for others then.
  virtual std::optional<uint32_t> better() const { return std::nullopt; }
  // What the other end must know, made anew for each connection; or why there
  // is no such channel from here.
  virtual absl::StatusOr<std::string> Offer() = 0;
  // An end of a new connection. An error says why this pair cannot have one.
  struct Ends {
    bool dialed = false;
    std::string ours = {};  // as offered
    std::string theirs = {};
  };
  virtual absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends& ends, std::shared_ptr<ChannelPort> port) = 0;
  // Once all connections are closed: what has left is reported when it returns,
  // and nothing later.
  virtual void Stop() {}
};

}  // namespace baton::rpc
