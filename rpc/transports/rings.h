// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/inline_task.h"
#include "core/mutex.h"
#include "core/spinning.h"
#include "rpc/channels/futex_event.h"
#include "rpc/channels/message_ring.h"
#include "rpc/transports/receiver.h"

namespace baton::rpc {

// What a poller watches. Ready is called often and on several threads, so it
// must cost next to nothing. Serve is called by one thread at a time, without
// locks, and must not wait.
class RingSource {
 public:
  virtual ~RingSource() = default;
  virtual bool Ready() = 0;
  virtual void Serve() = 0;
};

// The threads of one transport that serve the rings of all its links. One of
// them is the leader:
//
//   leads    --a source is ready-->   serves it, and stays the leader
//   leads    --nothing is ready-->    spins for a short while, if that has paid
//                                     off lately; then sleeps on the event
//   leads    --was given a task-->    gives up the lead by arming the event and
//            (core/inline_task.h)     runs the task itself
//   sleeps   --the event is set-->    becomes the leader, if there is none
//
// If something arrives while the former leader runs its task, the event wakes
// the other thread, which leads then. So a task that waits delays nobody.
// Thread-safe.
class RingPoller : public std::enable_shared_from_this<RingPoller> {
 public:
  // With the last copy of the result the poller stops.
  static std::shared_ptr<RingPoller> Make(std::shared_ptr<FutexEvent> wakeup);

  void Add(std::shared_ptr<RingSource> source);
  // A call of Serve that is under way may still be running when this returns.
  void Remove(const RingSource* source);
  // Wakes a thread, because this process itself has made a source ready.
  void Wake() { wakeup_->Wake(); }
  // To be called now and then, because any process that may write the event may
  // have broken it: wakes all threads if the source is ready but no thread
  // leads.
  void Check(RingSource& source);
  // When this returns nothing is served any more, except by the calling thread.
  void Stop();

 private:
  using Sources = std::vector<std::shared_ptr<RingSource>>;
  struct Member {
    std::shared_ptr<std::atomic<bool>> at_task =
        std::make_shared<std::atomic<bool>>(false);
    std::thread thread = {};
  };

  explicit RingPoller(std::shared_ptr<FutexEvent> wakeup)
      : wakeup_(std::move(wakeup)) {}

  void Run(std::atomic<bool>& at_task);
  // Called by the leader, which has given up the lead when this returns.
  void Lead(InlineTask& inline_task);
  bool TakeLead() { return !leading_.exchange(true); }
  // Returns true if a source was ready.
  bool ServeWhatIsReady();
  bool AnythingReady() const;
  void Refresh();
  // Gives up the lead, so that the wakeup finds the next leader. Returns false,
  // and keeps the lead, if there is work that no other thread would notice.
  bool StepAside();

  const std::shared_ptr<FutexEvent> wakeup_;
  std::atomic<bool> leading_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int> free_threads_{0};  // neither lead nor run a task

  // Used by the leader only.
  Sources served_;
  uint64_t served_version_ = 0;
  // A wait begins when something was served last, whoever sleeps meanwhile.
  Spinning spinning_;

  Mutex mutex_;
  Sources sources_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{0};  // of sources_
  std::list<Member> members_ ABSL_GUARDED_BY(mutex_);
};

// Reads the ring that one peer writes. In a ring, each frame of rpc/wire.proto
// follows its length, a u32.
class RingReceiver final : public RingSource {
 public:
  // `serve` is called on the poller's threads; `channels` are those of the
  // connection, or null.
  RingReceiver(RingEndIn end, std::shared_ptr<TensorChannels> channels,
               size_t max_message_bytes,
               std::function<void(RingReceiver&)> serve)
      : end_(std::move(end)),
        channels_(std::move(channels)),
        receiver_(max_message_bytes),
        serve_(std::move(serve)) {}

  bool Ready() override {
    return !paused_ && (unread_ || end_.ring->HasBytes());
  }
  void Serve() override { serve_(*this); }

  // Held while bytes are read and handed on, so that they stay in order.
  Mutex& reading() ABSL_LOCK_RETURNED(reading_) { return reading_; }
  // Reads the whole frames that are there, up to and including the message with
  // which `most` bytes are reached; the next call reads the rest. Errors are
  // those of Receiver::Consume, and InvalidArgument for a length that no frame
  // has.
  absl::Status Read(Device device, size_t most, Receiver::Batch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  const std::shared_ptr<TensorChannels>& channels() const { return channels_; }
  // A paused receiver is never ready.
  void set_paused(bool paused) { paused_ = paused; }

 private:
  // Returns the next whole frame of bytes_, or an empty one if there is none.
  absl::StatusOr<std::string_view> NextFrame()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);

  const RingEndIn end_;
  const std::shared_ptr<TensorChannels> channels_;
  std::atomic<bool> paused_{false};
  std::atomic<bool> unread_{false};  // whole frames in bytes_
  Mutex reading_;
  Receiver receiver_ ABSL_GUARDED_BY(reading_);
  std::string bytes_ ABSL_GUARDED_BY(reading_);  // what was read of the ring
  size_t taken_ ABSL_GUARDED_BY(reading_) = 0;   // of bytes_, as frames
  const std::function<void(RingReceiver&)> serve_;
};

// Writes the ring that one peer reads. Confined to the holder of the link's
// lock, except for the calls of the poller.
class RingSender final : public RingSource {
 public:
  // `serve` is called on the poller's threads, when there is room again.
  RingSender(RingEndOut end, std::function<void()> serve)
      : end_(std::move(end)), serve_(std::move(serve)) {}

  bool Ready() override;
  void Serve() override { serve_(); }

  // Adds a frame. What does not fit is kept until Flush finds room for it.
  // DataLoss if the ring was corrupted.
  absl::Status Add(std::string_view frame);
  // Returns true if all that was added has left this process.
  absl::StatusOr<bool> Flush();
  // Makes what has left visible to the peer, and wakes it if necessary.
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
