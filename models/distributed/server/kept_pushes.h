// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/server/shard_calls.h"
#include "models/distributed/server/shard_state.h"

namespace baton::dist {

// A trainer's pushes that failed at a shard while others may have taken them.
// They are kept until the shard has them, too: it counts a push that it has
// already only once. Thread-safe.
class KeptPushes : public std::enable_shared_from_this<KeptPushes> {
 public:
  KeptPushes(std::shared_ptr<ShardCalls> calls, int shards)
      : calls_(std::move(calls)),
        count_(shards),
        shards_(static_cast<size_t>(shards)) {}

  // Whether a shard may or may not have taken a push with this answer.
  static bool IsOpen(const absl::Status& answer);
  // `push` must not share memory with anything that the trainer may write.
  void Keep(int32_t shard, ExchangeRequest push);
  bool empty() const;
  // Sends the shard's pushes again, in order. Ends when the shard has them all,
  // or with the first error.
  Future<void> Send(int32_t shard, ShardCalls::Clock::time_point deadline);
  // Does so at all shards.
  Future<void> SendAll(ShardCalls::Clock::time_point deadline);

 private:
  struct Shard {
    std::deque<std::shared_ptr<const ExchangeRequest>> pushes;
    Future<void> sending;  // invalid, or ready, if none is sent
  };

  void SendNext(int32_t shard, ShardCalls::Clock::time_point deadline,
                const Promise<void>& sent);

  const std::shared_ptr<ShardCalls> calls_;
  const int32_t count_;  // of shards
  mutable Mutex mutex_;
  std::vector<Shard> shards_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
