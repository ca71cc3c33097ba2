// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "rpc/channels/message_ring.h"
#include "rpc/channels/ring_ends.h"
#include "rpc/transports/receiver.h"
#include "rpc/transports/ring_poller.h"

// The frames of rpc/wire.proto in a ring: each after its length, a u32.
namespace baton::rpc {

// Cuts what was read into frames. Thread-compatible.
class RingFrames {
 public:
  // Where bytes that come next are to be appended.
  std::string& bytes() { return bytes_; }
  // The next whole frame, valid until more bytes are appended; empty when there
  // is none. InvalidArgument for a length that no frame has.
  absl::StatusOr<std::string_view> Next();
  // Forgets what Next has given.
  void DropTaken();

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

// What comes from one peer.
class RingReceiver final : public RingSource {
 public:
  // `serve` is called on the poller's threads.
  RingReceiver(RingEndIn end, size_t max_message_bytes,
               std::function<void(RingReceiver&)> serve)
      : end_(std::move(end)),
        receiver_(max_message_bytes),
        serve_(std::move(serve)) {}

  bool Ready() override {
    return !paused_ && (unread_ || end_.ring->HasBytes());
  }
  void Serve() override { serve_(*this); }

  // Held while what was read is read and handed on, so that it stays in order.
  Mutex& reading() ABSL_LOCK_RETURNED(reading_) { return reading_; }
  // What there is: the whole frames of it, up to the message that brings
  // `most` bytes or more; the rest is for the next call. As Receiver::Consume.
  absl::Status Read(TensorChannels* channels, Device device, size_t most,
                    Receiver::Batch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  // A paused one is not ready.
  void set_paused(bool paused) { paused_ = paused; }

 private:
  const RingEndIn end_;
  std::atomic<bool> paused_{false};
  std::atomic<bool> unread_{false};  // in frames_
  Mutex reading_;
  Receiver receiver_ ABSL_GUARDED_BY(reading_);
  RingFrames frames_ ABSL_GUARDED_BY(reading_);
  const std::function<void(RingReceiver&)> serve_;
};

// What goes to one peer. Confined to whoever holds the link's lock, except for
// what the poller calls.
class RingSender final : public RingSource {
 public:
  // `serve` is called on the poller's threads, when there is room again.
  RingSender(RingEndOut end, std::function<void()> serve)
      : end_(std::move(end)), serve_(std::move(serve)) {}

  bool Ready() override;
  void Serve() override { serve_(); }

  // A frame. What there is no room for is kept until there is: then Flush.
  // DataLoss for a ring that was spoilt.
  absl::Status Add(std::string_view frame);
  // True when all that was added has left this process.
  absl::StatusOr<bool> Flush();
  // Lets the peer see what has left, and wakes it if need be.
  void Publish();

 private:
  absl::Status Write(std::string_view bytes);

  const RingEndOut end_;
  std::string rest_;
  bool unpublished_ = false;
  std::atomic<bool> waits_{false};  // for room
  const std::function<void()> serve_;
};

}  // namespace baton::rpc
