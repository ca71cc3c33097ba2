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
  size_t bytes = 0;       // of all of it
  size_t bytes_here = 0;  // of what came by the stream
  bool small = false;     // it is one of the control stream's, which is read on
};

// What one peer sent and may not be delivered yet. Others overtake it.
// Thread-safe.
class PendingMessages : public std::enable_shared_from_this<PendingMessages> {
 public:
  // No more large messages are to be read while more than `limit` bytes of such
  // are here that are held; `drained` is called, without a lock, once fewer
  // are. An honest peer's last one may come on top, of `message_limit` bytes.
  // `failed` is called so, too: a tensor that was promised does not come, while
  // nobody has dropped what waits for it.
  PendingMessages(std::shared_ptr<Deliveries> deliveries, size_t limit,
                  size_t message_limit, std::function<void()> drained,
                  std::function<void(absl::Status)> failed);

  // Delivers it once all that it awaits is OK; drops it where something is not.
  // ResourceExhausted for more than an honest peer has out.
  absl::Status Hold(const WorkerInfo& from, PendingMessage late);
  // Of a connection that has ended: nothing of it is delivered after this.
  void Drop();
  // False when nothing is held; else `then` runs when nothing is any more,
  // without a lock, behind what is delivered. Dropped by Drop.
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
  uint64_t drops_ ABSL_GUARDED_BY(mutex_) = 0;  // how often
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  HeldById held_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that are here
  // Of large messages: what small ones wait for may be behind what a large one
  // that was not read waits for.
  size_t large_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Task> when_none_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
