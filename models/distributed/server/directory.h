// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/server/clocks.h"
#include "models/distributed/server/key_layout.h"
#include "models/distributed/server/options.h"
#include "rpc/agent.h"

namespace baton::dist {

class ServerShard;

// Another incarnation of a worker is another one.
inline bool IsSame(const rpc::WorkerInfo& a, const rpc::WorkerInfo& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

// What a trainer has to know of the servers.
struct ServedKeys {
  ServerOptions options;
  KeyLayout layout;
  static constexpr auto Fields() {
    return std::tuple{&ServedKeys::options, &ServedKeys::layout};
  }
};

// Who serves a shard now. Each change of that is an epoch. One who knows the
// epoch is sent no primary: a handle to a worker that is lost does not arrive
// before that was given up.
struct ShardPlace {
  int64_t epoch = 0;
  std::optional<RRef<ServerShard>> primary{};
  static constexpr auto Fields() {
    return std::tuple{&ShardPlace::epoch, &ShardPlace::primary};
  }
};

// Knows the shards of one set of servers, and decides which of two servers that
// have lost each other goes on with a shard: the first to ask in an epoch. The
// other one hears that it is no more of the present epoch and serves nobody.
// Nothing passes through it while trainers train. Thread-safe.
class ServerDirectory : public std::enable_shared_from_this<ServerDirectory> {
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
  // Who serves the shard. Whom the server of epoch `after` does not answer
  // waits here for the next epoch, a short while, and is then told of the
  // present one all the same; 0: of that at once. NotFound when the servers
  // were closed.
  Future<ShardPlace> Locate(rpc::CallContext& call, int32_t shard,
                            int64_t after);
  // By a backup: it is the primary from now on, without a backup. By a primary:
  // it goes on without one. They give the epoch that begins so, and are
  // Aborted when `epoch` is not the present one.
  absl::StatusOr<int64_t> Promote(int32_t shard, int64_t epoch);
  absl::StatusOr<int64_t> GoAlone(int32_t shard, int64_t epoch);
  // By a primary without a backup, in its epoch: this one now has all that the
  // primary has acknowledged. Aborted as those.
  absl::Status Enlist(int32_t shard, int64_t epoch,
                      const RRef<ServerShard>& backup);

  using Exports = rpc::Methods<&ServerDirectory::Served,
                               rpc::kConcurrent<&ServerDirectory::NewTrainer>,
                               rpc::kConcurrent<&ServerDirectory::Locate>,
                               rpc::kConcurrent<&ServerDirectory::Promote>,
                               rpc::kConcurrent<&ServerDirectory::GoAlone>,
                               rpc::kConcurrent<&ServerDirectory::Enlist>>;

 private:
  struct Entry {
    int64_t epoch = 1;
    Replicas replicas;
    std::map<uint64_t, Promise<ShardPlace>> waiting{};  // for the next epoch
    ShardPlace place() const { return {epoch, replicas.primary}; }
  };
  absl::StatusOr<Entry*> EntryLocked(int32_t shard, int64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has replicas serve the shard, in the epoch after `epoch`; the new one is
  // answered to those who wait for it.
  using Change = std::function<absl::StatusOr<Replicas>(const Replicas&)>;
  absl::StatusOr<int64_t> Begin(int32_t shard, int64_t epoch,
                                const Change& change);
  void StopWaiting(int32_t shard, uint64_t who);

  const ServedKeys served_;
  mutable Mutex mutex_;
  std::vector<Entry> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t trainers_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waited_ ABSL_GUARDED_BY(mutex_) = 0;  // so often
};

}  // namespace baton::dist
