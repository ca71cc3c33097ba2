// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/transport.h"
#include "rpc/transports/deliveries.h"

namespace baton::rpc {

// A message with tensors that nobody may use yet (Imported::given).
struct PendingMessage {
  Message message;
  std::vector<Future<void>> awaited;
  size_t bytes = 0;       // of the whole message
  size_t bytes_here = 0;  // of what came by the stream
  bool small = false;     // came by the control stream, whose reading goes on
};

// Holds messages of one peer that may not be delivered yet; others overtake
// them. Thread-safe.
class PendingMessages : public std::enable_shared_from_this<PendingMessages> {
 public:
  // While the large messages held here have more than `limit` bytes, no more
  // large ones should be read; `drained` is called once they have fewer. An
  // honest peer may exceed the limit by one message of `message_limit` bytes.
  // `failed` is called if a promised tensor will not come, unless the messages
  // were dropped meanwhile. Both are called without a lock.
  PendingMessages(std::shared_ptr<Deliveries> deliveries, size_t limit,
                  size_t message_limit, std::function<void()> drained,
                  std::function<void(absl::Status)> failed);

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
  struct Held {
    WorkerInfo from;
    PendingMessage late;
    size_t missing = 0;
  };
  using HeldById = std::map<uint64_t, Held>;
  uint64_t drops() const;
  void Came(uint64_t id, const absl::Status& status);

  const std::shared_ptr<Deliveries> deliveries_;
  const size_t limit_, most_;
  const std::function<void()> drained_;
  const std::function<void(absl::Status)> failed_;
  mutable Mutex mutex_;
  uint64_t drops_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of Drop
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  HeldById held_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // received so far
  // Of large messages only: a small one may bring what a large one waits for,
  // so small ones are always read.
  size_t large_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Task> when_none_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
