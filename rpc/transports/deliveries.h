// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <variant>

#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/transport.h"
#include "rpc/transports/handler_gate.h"

namespace baton::rpc {

// What a message counts for besides its bytes, so that a flood of empty
// messages reaches the limits as well.
inline constexpr size_t kMessageOverhead = 256;

// What one peer sent, handed to the handler one by one and in order.
// Thread-safe.
class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  // What counts against `limit` are the bytes of messages until their receipts
  // are dropped. `drained` is called, without a lock, when no more than half of
  // it is left after more than it was.
  Deliveries(std::shared_ptr<HandlerGate> gate,
             std::weak_ptr<ThreadPool> executor, size_t limit,
             std::function<void()> drained)
      : gate_(std::move(gate)),
        executor_(std::move(executor)),
        limit_(limit),
        drained_(std::move(drained)) {}

  void Push(const WorkerInfo& from, Message message, size_t bytes);
  void PushLost(const WorkerInfo& peer, absl::Status why);
  // Runs in its turn, whether or not the handler may still be called; short.
  void PushTask(Task task);
  // False from when more than the limit waits until no more than half of it
  // does.
  bool has_room() const { return !full_; }

  // Begins to deliver what waits: on the executor, or in this call.
  void Post();
  void RunHere();

 private:
  struct Delivery {
    WorkerInfo from;
    std::variant<Message, absl::Status, Task> what;
    size_t bytes;
  };
  void Push(Delivery delivery);
  std::shared_ptr<void> Receipt(size_t bytes);
  void Release(size_t bytes);
  bool Claim();  // the right to run, which one thread has at a time
  void Run();

  const std::shared_ptr<HandlerGate> gate_;
  const std::weak_ptr<ThreadPool> executor_;
  const size_t limit_;
  const std::function<void()> drained_;
  mutable Mutex mutex_;
  std::deque<Delivery> queue_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> full_ = false;  // written under mutex_
};

}  // namespace baton::rpc
