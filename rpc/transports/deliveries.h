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

// The bytes that a message counts for besides its own, so that a flood of empty
// messages reaches the limits as well.
inline constexpr size_t kMessageOverhead = 256;

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

  void Push(const WorkerInfo& from, Message message, size_t bytes);
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
  };
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

}  // namespace baton::rpc
