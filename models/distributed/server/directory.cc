// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/directory.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

absl::Status Closed() {
  return absl::NotFoundError("the parameter servers were closed");
}

}  // namespace

void ServerDirectory::Set(std::vector<Replicas> shards) {
  std::vector<Entry> entries;
  for (Replicas& replicas : shards)
    entries.push_back({.epoch = 1, .replicas = std::move(replicas)});
  // Handles end without the lock.
  const MutexLock lock(mutex_);
  shards_.swap(entries);
}

TrainerId ServerDirectory::NewTrainer() {
  const MutexLock lock(mutex_);
  return TrainerId{++trainers_};
}

absl::StatusOr<ShardPlace> ServerDirectory::Locate(int32_t shard) const {
  const MutexLock lock(mutex_);
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size())
    return Closed();
  const Entry& entry = shards_[static_cast<size_t>(shard)];
  return ShardPlace{.epoch = entry.epoch, .primary = entry.replicas.primary};
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

absl::StatusOr<int64_t> ServerDirectory::Promote(int32_t shard, int64_t epoch) {
  Replicas before;  // its handles end without the lock
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Entry* const entry, EntryLocked(shard, epoch));
  if (entry->replicas.backup.empty()) {
    return absl::AbortedError(absl::StrCat("shard ", shard, " has no backup"));
  }
  before = entry->replicas;
  entry->replicas = {.primary = before.backup.front(), .backup = {}};
  return ++entry->epoch;
}

absl::StatusOr<int64_t> ServerDirectory::GoAlone(int32_t shard, int64_t epoch) {
  std::vector<RRef<ServerShard>> before;
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(Entry* const entry, EntryLocked(shard, epoch));
  before.swap(entry->replicas.backup);
  return ++entry->epoch;
}

}  // namespace baton::dist
