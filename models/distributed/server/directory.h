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

// Whether both are the same incarnation of the same worker.
inline bool IsSame(const rpc::WorkerInfo& a, const rpc::WorkerInfo& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

// What a trainer needs to know of the servers.
struct ServedKeys {
  ServerOptions options;
  KeyLayout layout;
  static constexpr auto Fields() {
    return std::tuple{&ServedKeys::options, &ServedKeys::layout};
  }
};

// The server of a shard; each change of it begins a new epoch. A caller that
// already knows the epoch is sent no primary, because a handle to a lost worker
// cannot be received until that worker is given up.
struct ShardPlace {
  int64_t epoch = 0;
  std::optional<RRef<ServerShard>> primary{};
  static constexpr auto Fields() {
    return std::tuple{&ShardPlace::epoch, &ShardPlace::primary};
  }
};

class ServerDirectory;

// The directories of one set of servers: the one in charge, then its successors
// in order.
using DirectoryLine = std::vector<RRef<ServerDirectory>>;
// Removes the directory of the lost worker, unless it is the only one: only
// handles to workers that are still there can be sent.
void StrikeOff(const rpc::WorkerInfo& lost, DirectoryLine& line);

// Knows the servers of each shard in one set of servers. When two servers of a
// shard have lost each other, it decides which of them continues: the first one
// to ask in an epoch. The other one is told that its epoch is over and stops
// serving. Training traffic does not pass through the directory.
//
// With several directories in a line, the first is in charge. A quorum of a
// line is most of its directories, or half of them with the first, so that any
// two have a directory in common. A decision is answered when a quorum has it.
// A line is followed by a shorter one, without the directories of lost workers,
// when a quorum has voted for that; each directory votes once in a line, and
// acknowledges no decision of the line after that. So a directory that was
// stopped or cut off decides nothing: the others do not answer it, or have
// voted for another line. A directory that took another's place releases the
// shards when no trainer is left. Thread-safe.
class ServerDirectory : public std::enable_shared_from_this<ServerDirectory> {
 public:
  static std::shared_ptr<ServerDirectory> Make(rpc::CallContext& call,
                                               const ServedKeys& served);
  static std::shared_ptr<ServerDirectory> MakeAt(rpc::Agent& agent,
                                                 const ServedKeys& served);
  // For MakeAt.
  ServerDirectory(rpc::Agent& agent, const ServedKeys& served)
      : agent_(agent), served_(served) {}

  // The servers of one shard.
  struct Replicas {
    RRef<ServerShard> primary{};
    std::vector<RRef<ServerShard>> backup{};  // one or none
    static constexpr auto Fields() {
      return std::tuple{&Replicas::primary, &Replicas::backup};
    }
  };
  // The latest decision on a shard; decisions are numbered.
  struct Decided {
    int64_t epoch = 1;
    int64_t number = 0;
    Replicas replicas{};
    static constexpr auto Fields() {
      using D = Decided;
      return std::tuple{&D::epoch, &D::number, &D::replicas};
    }
  };
  // Called at each directory of the line: from change `number` of the line on,
  // this one has the position `place`. Does nothing after Clear.
  void Stand(const DirectoryLine& line, int32_t place, int64_t number);
  // Called locally by the maker of the shards: sets their servers in the first
  // epoch. Returns when a quorum of the line knows; Unavailable if none does.
  absl::Status Set(std::vector<Replicas> shards);
  // Called by the first directory of line `number`. OK means that this one has
  // the decision and had not voted for another line before.
  absl::Status Learn(int64_t number, int32_t shard, const Decided& decided);
  // Called by the directory at `candidate` in line `number`, which knows these
  // numbers of decisions: OK is the vote for the directories at the places
  // `left` to be the next line. Both must know the same decisions: the
  // candidate is told those that it lacks, and asks again. Where this one has
  // not heard of a shard at all, it votes, and learns no earlier decision on
  // it than the candidate's: that may not be told, if it names a lost worker.
  absl::Status Vote(int64_t number, int32_t candidate,
                    const std::vector<int32_t>& left,
                    const std::vector<int64_t>& known);
  // Line `number` was followed by the directories at these of its places.
  void Succeed(int64_t number, const std::vector<int32_t>& left);
  // Releases the shards: they end when trainers have released them, too.
  void Clear();
  // Calls Clear at all directories of the line, again at one that does not
  // answer.
  void Close();

  ServedKeys Served() const { return served_; }
  // Returns only this directory if there is no line.
  DirectoryLine Line() const;
  TrainerId NewTrainer();
  // Returns the server of the shard. A client that the server of epoch `after`
  // does not answer waits here for the next epoch; after a short while it gets
  // the present one in any case. With `after` 0 it does not wait. Returns
  // NotFound if the servers were closed.
  Future<ShardPlace> Locate(rpc::CallContext& call, int32_t shard,
                            int64_t after);
  // A backup calls Promote to become the primary, without a backup. A primary
  // calls GoAlone to continue without its backup. Both return the epoch that
  // begins with that: Aborted if `epoch` is not the present one, and
  // Unavailable if this directory is not in charge. A primary that repeats its
  // call, because it has no answer, gets the same epoch.
  Future<int64_t> Promote(rpc::CallContext& call, int32_t shard, int64_t epoch);
  Future<int64_t> GoAlone(rpc::CallContext& call, int32_t shard, int64_t epoch);
  // A primary without a backup calls this in its epoch once `backup` has
  // everything that the primary has acknowledged. Returns the epoch; errors are
  // those of Promote.
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
                               rpc::kConcurrent<&ServerDirectory::Enlist>,
                               rpc::kConcurrent<&ServerDirectory::Vote>,
                               rpc::kConcurrent<&ServerDirectory::Succeed>>;

 private:
  struct Entry {
    // Without a primary: this directory has heard of no decision, and learns
    // none before that number.
    Decided decided{};
    std::map<uint64_t, Promise<ShardPlace>> waiting{};  // for the next epoch
    ShardPlace place() const {
      const RRef<ServerShard>& primary = decided.replicas.primary;
      return {decided.epoch,
              primary.valid() ? std::optional(primary) : std::nullopt};
    }
  };
  // Returns the entry of a shard if this directory has heard of it.
  absl::StatusOr<Entry*> FindLocked(int32_t shard)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // And if it is in charge and the epoch is the present one.
  absl::StatusOr<Entry*> EntryLocked(int32_t shard, int64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status InChargeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOfLineLocked(const rpc::WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsThereLocked(const rpc::Target& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes the replicas of the shard, in a new epoch after `epoch` or in the
  // same one; a new epoch is announced to those that wait for it.
  using Change = std::function<absl::StatusOr<Replicas>(const Replicas&)>;
  enum class Next { kEpoch, kSameEpoch };
  // Tells a primary's decision again if this is the call that it answers.
  std::optional<Future<int64_t>> Repeated(const rpc::CallContext& call,
                                          int32_t shard, int64_t epoch);
  Future<int64_t> TellAndAnswer(int32_t shard, const Decided& decided);
  Future<int64_t> Decide(int32_t shard, int64_t epoch, Next next,
                         const Change& change);
  // Answers those that wait for the epoch that has begun.
  void Answer(int32_t shard);
  // Done when a quorum of the line knows; Unavailable if none answers in time.
  Future<void> Tell(int32_t shard, const Decided& decided,
                    const rpc::CallOptions& options) const;
  void StopWaiting(int32_t shard, uint64_t who);
  void OnMember(const rpc::MemberEvent& event);
  // Asks the line for votes for one without the lost, until that follows or is
  // not needed any more.
  void StrikeOffTheLost();
  bool MayProposeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a candidate that knows these decisions knows the same as this
  // directory; `lacking` are those that it has to be told.
  bool AgreesLocked(const std::vector<int64_t>& known,
                    std::map<int32_t, Decided>& lacking) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status VoteLocked(const std::vector<int32_t>& left,
                          const std::vector<int64_t>& known)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the directory at that place of the line is gone, and decided
  // nothing that this one does not know.
  bool IsGoneLocked(size_t place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Future<void> AskForVotes(int64_t number, const std::vector<int32_t>& left);
  void OnVotes(int64_t number, const std::vector<int32_t>& left,
               const absl::Status& votes);
  void TellAll();
  std::vector<int64_t> KnownLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static constexpr std::chrono::seconds kLookAgain{2};
  void ClearAt(const RRef<ServerDirectory>& other);
  void EndWithTrainers();
  void LookAgain(std::chrono::milliseconds delay);

  rpc::Agent& agent_;
  const ServedKeys served_;
  mutable Mutex mutex_;
  DirectoryLine line_ ABSL_GUARDED_BY(mutex_);
  size_t place_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes of the line
                                               // so far
  // The places for the next line for which this directory has voted; empty
  // before that.
  std::vector<int32_t> voted_ ABSL_GUARDED_BY(mutex_);
  bool proposing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cleared_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether a worker of the line may have been there while it was given up: the
  // others may then have gone on in a line without this directory.
  bool apart_ ABSL_GUARDED_BY(mutex_) = false;
  // Incarnations that are gone, even if the cluster still lists them.
  std::set<uint64_t> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t trainers_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waited_ ABSL_GUARDED_BY(mutex_) = 0;  // number of waits so far
};

}  // namespace baton::dist
