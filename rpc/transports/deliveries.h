// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/transport.h"

namespace baton::rpc {

// Lets calls to a MessageHandler through until Close, which waits for the calls
// under way. Close must not be called from within a call. Thread-safe.
class HandlerGate {
 public:
  void Open(MessageHandler* handler) { handler_ = handler; }

  // Runs `call(MessageHandler&)` unless the gate is closed.
  template <typename Call>
  void Pass(Call&& call) {
    ++inside_;  // first: either Close sees this call, or this call sees Close
    if (MessageHandler* const handler = handler_) call(*handler);
    if (--inside_ > 0 || handler_ != nullptr) return;
    MutexLock lock(mutex_);
    free_.NotifyAll();
  }

  void Close() {
    handler_ = nullptr;
    MutexLock lock(mutex_);
    while (inside_ > 0) free_.Wait(mutex_);
  }

 private:
  std::atomic<MessageHandler*> handler_{nullptr};
  std::atomic<int> inside_{0};
  Mutex mutex_;
  CondVar free_;  // there is no handler, and nothing inside
};

// Waits until all that was posted to this pool of one thread has run, because
// senders may be destroyed before the transport. Must not run on that thread.
inline void AwaitPosted(ThreadPool& reports) {
  const Promise<void> done;
  reports.Post([done] { done.Set(absl::OkStatus()); });
  done.future().Await(kNoLimit).IgnoreError();
}

// The bytes that a message counts for besides its own, so that a flood of empty
// messages reaches the limits as well.
inline constexpr size_t kMessageOverhead = 256;

// Gives a message its header, which has come as its last tensor. Returns an
// error if there is no memory for it.
absl::Status RestoreHeader(Message& message);

// Passes the messages of one peer to the handler one at a time and in order.
// Thread-safe.
class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  // The bytes of messages count against `limit` until their receipts are
  // dropped. After they have exceeded it, `drained` is called, without a lock,
  // once they are at most half of it.
  Deliveries(std::shared_ptr<HandlerGate> gate,
             std::weak_ptr<ThreadPool> executor, size_t limit,
             std::function<void()> drained)
      : gate_(std::move(gate)),
        executor_(std::move(executor)),
        limit_(limit),
        drained_(std::move(drained)) {}

  void Push(const WorkerInfo& from, Message message, size_t bytes) {
    Push(from, std::move(message), bytes, nullptr);
  }
  using Failed = std::function<void(absl::Status)>;
  // Calls RestoreHeader before the message is delivered. If that fails, drops
  // the message and calls `failed`, without a lock.
  void PushWithoutHeader(const WorkerInfo& from, Message message, size_t bytes,
                         Failed failed) {
    Push(from, std::move(message), bytes, std::move(failed));
  }
  void PushLost(const WorkerInfo& peer, absl::Status why);
  // Runs the task in its turn, even if the gate is closed. It must be short.
  void PushTask(Task task);
  // Returns false from when the bytes exceed the limit until they are at most
  // half of it.
  bool has_room() const { return !full_; }

  // Deliver what waits: Post on the executor, RunHere in this call.
  void Post();
  void RunHere();

 private:
  struct Delivery {
    WorkerInfo from;
    std::variant<Message, absl::Status, Task> what;
    size_t bytes;
    Failed restore_failed = nullptr;  // null: the message has its header
  };
  void Push(const WorkerInfo& from, Message message, size_t bytes,
            Failed restore_failed);
  void Push(Delivery delivery);
  std::shared_ptr<void> Receipt(size_t bytes);
  void Release(size_t bytes);
  // Returns true if something waits and no other thread delivers it: the caller
  // must then call Run.
  bool Claim();
  void Run();
  Delivery Take();
  void Pass(Delivery delivery);

  const std::shared_ptr<HandlerGate> gate_;
  const std::weak_ptr<ThreadPool> executor_;
  const size_t limit_;
  const std::function<void()> drained_;
  mutable Mutex mutex_;
  std::deque<Delivery> queue_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> waiting_{0};  // the queue's size; grows under mutex_
  std::atomic<bool> running_{false};
  std::atomic<size_t> bytes_{0};   // grows under mutex_
  std::atomic<bool> full_{false};  // written under mutex_
};

// A message with tensors that nobody may use yet (Imported::given).
struct PendingMessage {
  Message message;
  std::vector<Future<void>> awaited;
  size_t bytes = 0;       // of the whole message
  size_t bytes_here = 0;  // of what came by the stream
  bool small = false;     // nothing of it came in chunks
  bool header_is_last_tensor = false;
};

// Holds messages of one peer that may not be delivered yet; others overtake
// them. Thread-safe.
class PendingMessages : public std::enable_shared_from_this<PendingMessages> {
 public:
  // Once the large messages held here have more than `limit` bytes, there is no
  // room until they have at most half of it; then `drained` is called. `limit`
  // does not bound what is held: the peer may complete the message under way,
  // of up to `message_limit` bytes, and what it has written before it learns
  // that there is no room, which gRPC's flow control keeps to some MB. Hold
  // refuses messages when `limit`, `message_limit` and 128 MB are exceeded
  // together. `failed` is called if a promised tensor will not come, unless the
  // messages were dropped meanwhile. Both are called without a lock.
  PendingMessages(std::shared_ptr<Deliveries> deliveries, size_t limit,
                  size_t message_limit, std::function<void()> drained,
                  Deliveries::Failed failed);

  // Delivers the message once all that it awaits is OK, and drops it if
  // something fails. Returns ResourceExhausted if more is held than an honest
  // peer sends.
  absl::Status Hold(const WorkerInfo& from, PendingMessage late);
  // Called when the connection has ended: no held message is delivered after
  // this.
  void Drop();
  // Returns false if nothing is held. Otherwise `then` runs without a lock once
  // nothing is held any more, after the messages are delivered. Drop discards
  // it.
  bool WhenNone(Task then);
  bool has_room() const;

 private:
  using Failed = Deliveries::Failed;
  struct Held {
    WorkerInfo from;
    PendingMessage late;
    size_t missing = 0;
  };
  using HeldById = std::map<uint64_t, Held>;
  // Returns a function that calls `failed_` unless Drop is called before it.
  Failed UnlessDroppedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t drops() const;
  void Came(uint64_t id, const absl::Status& status);

  const std::shared_ptr<Deliveries> deliveries_;
  const size_t limit_, most_;
  const std::function<void()> drained_;
  const Failed failed_;
  mutable Mutex mutex_;
  uint64_t drops_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of Drop
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  HeldById held_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // received so far
  // Of large messages only: a small one may bring what a large one waits for,
  // so small ones are always read.
  size_t large_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Task> when_none_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
