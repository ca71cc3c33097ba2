// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

class ServerDirectory;

// The directories of one set of servers: the one in charge, then those that
// follow it, in the order in which they take its place.
using DirectoryLine = std::vector<RRef<ServerDirectory>>;
// Without that of a worker that is lost, unless there is no other: handles to
// the others alone can be sent.
void StrikeOff(const rpc::WorkerInfo& lost, DirectoryLine& line);

// Knows the shards of one set of servers, and decides which of two servers that
// have lost each other goes on with a shard: the first to ask in an epoch. The
// other one hears that it is no more of the present epoch and serves nobody.
// Nothing passes through it while trainers train.
//
// In a line of several each tells those behind it what it has decided, before
// it answers. When the workers of all before it are lost it is in charge, as
// long as workers of most names of the line are there; half of them are enough
// where the first is one. Otherwise it decides nothing: another part of a
// cluster that fell apart may. It strikes those whose workers are lost off the
// line, so that others may be lost later. One that took another's place lets go
// of the shards when no trainer is left. Thread-safe.
class ServerDirectory : public std::enable_shared_from_this<ServerDirectory> {
 public:
  static std::shared_ptr<ServerDirectory> Make(rpc::CallContext& call,
                                               const ServedKeys& served);
  static std::shared_ptr<ServerDirectory> MakeAt(rpc::Agent& agent,
                                                 const ServedKeys& served);
  // For MakeAt.
  ServerDirectory(rpc::Agent& agent, const ServedKeys& served)
      : agent_(agent), served_(served) {}

  // Servers of a shard.
  struct Replicas {
    RRef<ServerShard> primary{};
    std::vector<RRef<ServerShard>> backup{};  // one or none
    static constexpr auto Fields() {
      return std::tuple{&Replicas::primary, &Replicas::backup};
    }
  };
  // What is known of one; decisions are numbered.
  struct Decided {
    int64_t epoch = 1;
    int64_t number = 0;
    Replicas replicas{};
    static constexpr auto Fields() {
      using D = Decided;
      return std::tuple{&D::epoch, &D::number, &D::replicas};
    }
  };
  // At each of the line: which it is the `place`th of, from change `number` of
  // the line on.
  void Stand(const DirectoryLine& line, int32_t place, int64_t number);
  // Locally, by whoever made the shards: their servers in the first epoch.
  // Returns when those behind it know.
  void Set(std::vector<Replicas> shards);
  // By one that is before it.
  void Learn(int32_t shard, const Decided& decided);
  // Lets go of the shards: they end when trainers have let go, too.
  void Clear();
  // The same, of all of the line.
  void Close();

  ServedKeys Served() const { return served_; }
  // Alone, where there is no line.
  DirectoryLine Line() const;
  TrainerId NewTrainer();
  // Who serves the shard. Whom the server of epoch `after` does not answer
  // waits here for the next epoch, a short while, and is then told of the
  // present one all the same; 0: of that at once. NotFound when the servers
  // were closed.
  Future<ShardPlace> Locate(rpc::CallContext& call, int32_t shard,
                            int64_t after);
  // By a backup: it is the primary from now on, without a backup. By a primary:
  // it goes on without one. They give the epoch that begins so, and are
  // Aborted when `epoch` is not the present one, Unavailable where another
  // directory is in charge, or none.
  Future<int64_t> Promote(int32_t shard, int64_t epoch);
  Future<int64_t> GoAlone(int32_t shard, int64_t epoch);
  // By a primary without a backup, in its epoch: this one now has all that the
  // primary has acknowledged. Gives the epoch; errors as those.
  Future<int64_t> Enlist(int32_t shard, int64_t epoch,
                         const RRef<ServerShard>& backup);

  using Exports = rpc::Methods<&ServerDirectory::Make, &ServerDirectory::Served,
                               rpc::kConcurrent<&ServerDirectory::Stand>,
                               rpc::kConcurrent<&ServerDirectory::Learn>,
                               rpc::kConcurrent<&ServerDirectory::Clear>,
                               rpc::kConcurrent<&ServerDirectory::Line>,
                               rpc::kConcurrent<&ServerDirectory::NewTrainer>,
                               rpc::kConcurrent<&ServerDirectory::Locate>,
                               rpc::kConcurrent<&ServerDirectory::Promote>,
                               rpc::kConcurrent<&ServerDirectory::GoAlone>,
                               rpc::kConcurrent<&ServerDirectory::Enlist>>;

 private:
  struct Entry {
    Decided decided{};
    std::map<uint64_t, Promise<ShardPlace>> waiting{};  // for the next epoch
    ShardPlace place() const {
      const RRef<ServerShard>& primary = decided.replicas.primary;
      return {decided.epoch,
              primary.valid() ? std::optional(primary) : std::nullopt};
    }
  };
  // Of whom this one is in charge, in the epoch.
  absl::StatusOr<Entry*> EntryLocked(int32_t shard, int64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status InChargeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsThereLocked(const rpc::Target& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has replicas serve the shard, in the epoch after `epoch` or still in it;
  // the new one is answered to those who wait for it.
  using Change = std::function<absl::StatusOr<Replicas>(const Replicas&)>;
  enum class Next { kEpoch, kSameEpoch };
  Future<int64_t> Decide(int32_t shard, int64_t epoch, Next next,
                         const Change& change);
  // Those who wait for the epoch that has begun.
  void Answer(int32_t shard);
  // Done when those behind this one know, or have had a while to.
  Future<void> Tell(int32_t shard, const Decided& decided) const;
  void StopWaiting(int32_t shard, uint64_t who);
  void OnMember(const rpc::MemberEvent& event);
  void StrikeOffTheLost();
  void EndWithTrainers();
  void LookAgain(std::chrono::milliseconds delay);

  rpc::Agent& agent_;
  const ServedKeys served_;
  mutable Mutex mutex_;
  DirectoryLine line_ ABSL_GUARDED_BY(mutex_);
  size_t place_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;  // changes of it, so far
  // Incarnations that are gone, whether or not the cluster still lists them.
  std::set<uint64_t> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t trainers_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waited_ ABSL_GUARDED_BY(mutex_) = 0;  // so often
};

}  // namespace baton::dist
