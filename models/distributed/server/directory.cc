// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/directory.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

// Whom no server answers asks again after so long: the one of the present epoch
// may be there again.
constexpr std::chrono::milliseconds kLongestLook{100};

absl::Status Closed() {
  return absl::NotFoundError("the parameter servers were closed");
}

}  // namespace

void ServerDirectory::Set(std::vector<Replicas> shards) {
  std::vector<Entry> entries;
  for (Replicas& replicas : shards)
    entries.push_back({.epoch = 1, .replicas = std::move(replicas)});
  {
    const MutexLock lock(mutex_);
    shards_.swap(entries);
  }
  // Handles end without the lock.
  for (const Entry& entry : entries)
    for (const auto& [who, promise] : entry.waiting) promise.Set(Closed());
}

TrainerId ServerDirectory::NewTrainer() {
  const MutexLock lock(mutex_);
  return TrainerId{++trainers_};
}

Future<ShardPlace> ServerDirectory::Locate(rpc::CallContext& call,
                                           int32_t shard, int64_t after) {
  const MutexLock lock(mutex_);
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size())
    return ReadyFuture<ShardPlace>(Closed());
  Entry& entry = shards_[static_cast<size_t>(shard)];
  if (entry.epoch > after) return ReadyFuture<ShardPlace>(entry.place());
  const uint64_t who = ++waited_;
  const Promise<ShardPlace> promise = entry.waiting[who];
  rpc::Agent& agent = call.agent();
  agent.timer().After(kLongestLook,
                      [&agent, weak = weak_from_this(), shard, who] {
                        agent.executor().Post([weak, shard, who] {
                          if (const auto self = weak.lock())
                            self->StopWaiting(shard, who);
                        });
                      });
  return promise.future();
}

void ServerDirectory::StopWaiting(int32_t shard, uint64_t who) {
  std::optional<Promise<ShardPlace>> waiting;
  ShardPlace place;
  {
    const MutexLock lock(mutex_);
    if (static_cast<size_t>(shard) >= shards_.size()) return;
    Entry& entry = shards_[static_cast<size_t>(shard)];
    const auto found = entry.waiting.find(who);
    if (found == entry.waiting.end()) return;
    waiting = found->second;
    entry.waiting.erase(found);
    place.epoch = entry.epoch;
  }
  waiting->Set(place);
}

absl::StatusOr<ServerDirectory::Entry*> ServerDirectory::EntryLocked(
    int32_t shard, int64_t epoch) {
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size())
    return Closed();
  Entry& entry = shards_[static_cast<size_t>(shard)];
  if (entry.epoch != epoch) {
    return absl::AbortedError(absl::StrCat("shard ", shard, " is in epoch ",
                                           entry.epoch,
                                           ", in which another server has it"));
  }
  return &entry;
}

absl::StatusOr<int64_t> ServerDirectory::Begin(int32_t shard, int64_t epoch,
                                               const Change& change) {
  Replicas before;  // its handles end without the lock
  std::map<uint64_t, Promise<ShardPlace>> waiting;
  ShardPlace place;
  {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(Entry* const entry, EntryLocked(shard, epoch));
    before = entry->replicas;
    ASSIGN_OR_RETURN(entry->replicas, change(before));
    ++entry->epoch;
    place = entry->place();
    waiting.swap(entry->waiting);
  }
  for (const auto& [who, promise] : waiting) promise.Set(place);
  return place.epoch;
}

absl::StatusOr<int64_t> ServerDirectory::Promote(int32_t shard, int64_t epoch) {
  return Begin(
      shard, epoch, [&](const Replicas& before) -> absl::StatusOr<Replicas> {
        if (before.backup.empty()) {
          return absl::AbortedError(
              absl::StrCat("shard ", shard, " has no backup"));
        }
        return Replicas{.primary = before.backup.front(), .backup = {}};
      });
}

absl::StatusOr<int64_t> ServerDirectory::GoAlone(int32_t shard, int64_t epoch) {
  return Begin(shard, epoch,
               [](const Replicas& before) -> absl::StatusOr<Replicas> {
                 return Replicas{.primary = before.primary, .backup = {}};
               });
}

absl::Status ServerDirectory::Enlist(int32_t shard, int64_t epoch,
                                     const RRef<ServerShard>& backup) {
  std::vector<RRef<ServerShard>> before = {backup};
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Entry* const entry, EntryLocked(shard, epoch));
  before.swap(entry->replicas.backup);
  return absl::OkStatus();
}

}  // namespace baton::dist
