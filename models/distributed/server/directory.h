// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "models/distributed/server/clocks.h"
#include "models/distributed/server/key_layout.h"
#include "models/distributed/server/options.h"
#include "rpc/agent.h"

namespace baton::dist {

class ServerShard;

// What a trainer has to know of the servers.
struct ServedKeys {
  ServerOptions options;
  KeyLayout layout;
  static constexpr auto Fields() {
    return std::tuple{&ServedKeys::options, &ServedKeys::layout};
  }
};

// Who serves a shard now. Each change of that is an epoch.
struct ShardPlace {
  int64_t epoch = 0;
  RRef<ServerShard> primary;
  static constexpr auto Fields() {
    return std::tuple{&ShardPlace::epoch, &ShardPlace::primary};
  }
};

// Knows the shards of one set of servers, and decides which of two servers that
// have lost each other goes on with a shard: the first to ask in an epoch. The
// other one hears that it is no more of the present epoch and serves nobody.
// Nothing passes through it while trainers train. Thread-safe.
class ServerDirectory {
 public:
  explicit ServerDirectory(ServedKeys served) : served_(std::move(served)) {}

  // Locally, by whoever made the shards: their servers in the first epoch.
  struct Replicas {
    RRef<ServerShard> primary;
    std::vector<RRef<ServerShard>> backup;  // one or none
  };
  void Set(std::vector<Replicas> shards);
  // Lets go of the shards: they end when trainers have let go, too.
  void Clear() { Set({}); }

  ServedKeys Served() const { return served_; }
  TrainerId NewTrainer();
  // NotFound when the servers were closed.
  absl::StatusOr<ShardPlace> Locate(int32_t shard) const;
  // By a backup: it is the primary from now on, without a backup. By a primary:
  // it goes on without one. They give the epoch that begins so, and are
  // Aborted when `epoch` is not the present one.
  absl::StatusOr<int64_t> Promote(int32_t shard, int64_t epoch);
  absl::StatusOr<int64_t> GoAlone(int32_t shard, int64_t epoch);

  using Exports = rpc::Methods<
      &ServerDirectory::Served, rpc::kConcurrent<&ServerDirectory::NewTrainer>,
      &ServerDirectory::Locate, rpc::kConcurrent<&ServerDirectory::Promote>,
      rpc::kConcurrent<&ServerDirectory::GoAlone>>;

 private:
  struct Entry {
    int64_t epoch = 1;
    Replicas replicas;
  };
  absl::StatusOr<Entry*> EntryLocked(int32_t shard, int64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServedKeys served_;
  mutable Mutex mutex_;
  std::vector<Entry> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t trainers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::dist
