// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/directory.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/directory_quorum.h"
#include "models/distributed/server/mix_bits.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

// A client whose server does not answer waits at most this long for the next
// epoch: the present server may be reachable again.
constexpr std::chrono::milliseconds kLongestLook{100};

absl::Status Closed() {
  return absl::NotFoundError("the parameter servers were closed");
}

}  // namespace

void StrikeOff(const rpc::WorkerInfo& lost, DirectoryLine& line) {
  DirectoryLine left;
  for (const RRef<ServerDirectory>& directory : line)
    if (!IsSame(directory.owner(), lost)) left.push_back(directory);
  if (!left.empty()) line = std::move(left);
}

void ServerDirectory::Clear() {
  std::vector<Entry> entries;  // destroyed, with the handles, after the lock is
                               // released
  DirectoryLine line;
  {
    const MutexLock lock(mutex_);
    cleared_ = true;
    shards_.swap(entries);
    line_.swap(line);
  }
  for (const Entry& entry : entries)
    for (const auto& [who, promise] : entry.waiting) promise.Set(Closed());
}

TrainerId ServerDirectory::NewTrainer() {
  const MutexLock lock(mutex_);
  // No other directory returns the same id.
  return TrainerId{MixBits(MixBits(agent_.self().incarnation) + ++trainers_)};
}

Future<ShardPlace> ServerDirectory::Locate(rpc::CallContext& call,
                                           int32_t shard, int64_t after) {
  const MutexLock lock(mutex_);
  const absl::StatusOr<Entry*> found = FindLocked(shard);
  if (!found.ok()) return ReadyFuture<ShardPlace>(found.status());
  Entry& entry = **found;
  if (entry.decided.epoch > after)
    return ReadyFuture<ShardPlace>(entry.place());
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
    place.epoch = entry.decided.epoch;
  }
  waiting->Set(place);
}

absl::StatusOr<ServerDirectory::Entry*> ServerDirectory::FindLocked(
    int32_t shard) {
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size())
    return Closed();
  Entry& entry = shards_[static_cast<size_t>(shard)];
  if (entry.decided.replicas.primary.valid()) return &entry;
  return absl::UnavailableError(
      absl::StrCat("the directory of worker ", agent_.self().name,
                   " has not heard of shard ", shard));
}

absl::StatusOr<ServerDirectory::Entry*> ServerDirectory::EntryLocked(
    int32_t shard, int64_t epoch) {
  ASSIGN_OR_RETURN(Entry * entry, FindLocked(shard));
  RETURN_IF_ERROR(InChargeLocked());
  if (entry->decided.epoch != epoch) {
    return absl::AbortedError(absl::StrCat("shard ", shard, " is in epoch ",
                                           entry->decided.epoch,
                                           ", in which another server has it"));
  }
  return entry;
}

Future<int64_t> ServerDirectory::Decide(int32_t shard, int64_t epoch, Next next,
                                        const Change& change) {
  Replicas before;  // its handles are destroyed after the lock is released
  Decided decided;
  {
    const MutexLock lock(mutex_);
    const absl::StatusOr<Entry*> entry = EntryLocked(shard, epoch);
    if (!entry.ok()) return ReadyFuture<int64_t>(entry.status());
    Decided& known = (*entry)->decided;
    auto after = change(known.replicas);
    if (!after.ok()) return ReadyFuture<int64_t>(after.status());
    before = std::exchange(known.replicas, *std::move(after));
    if (next == Next::kEpoch) ++known.epoch;
    ++known.number;
    decided = known;
  }
  return TellAndAnswer(shard, decided);
}

Future<int64_t> ServerDirectory::TellAndAnswer(int32_t shard,
                                               const Decided& decided) {
  return Tell(shard, decided, {.timeout = kDirectoryMayBeLost})
      .Then([self = shared_from_this(), shard, epoch = decided.epoch] {
        self->Answer(shard);
        return epoch;
      });
}

void ServerDirectory::Answer(int32_t shard) {
  std::map<uint64_t, Promise<ShardPlace>> waiting;
  ShardPlace place;
  {
    const MutexLock lock(mutex_);
    if (static_cast<size_t>(shard) >= shards_.size()) return;
    Entry& entry = shards_[static_cast<size_t>(shard)];
    place = entry.place();
    waiting.swap(entry.waiting);
  }
  for (const auto& [who, promise] : waiting) promise.Set(place);
}

std::optional<Future<int64_t>> ServerDirectory::Repeated(
    const rpc::CallContext& call, int32_t shard, int64_t epoch) {
  Decided decided;
  {
    const MutexLock lock(mutex_);
    const absl::StatusOr<Entry*> entry = EntryLocked(shard, epoch + 1);
    if (!entry.ok()) return std::nullopt;
    decided = (*entry)->decided;
  }
  const Replicas& replicas = decided.replicas;
  if (!replicas.backup.empty() ||
      !IsSame(replicas.primary.owner(), call.caller()))
    return std::nullopt;
  return TellAndAnswer(shard, decided);
}

Future<int64_t> ServerDirectory::Promote(rpc::CallContext& call, int32_t shard,
                                         int64_t epoch) {
  if (auto repeated = Repeated(call, shard, epoch)) return *repeated;
  return Decide(shard, epoch, Next::kEpoch,
                [&](const Replicas& before) -> absl::StatusOr<Replicas> {
                  if (before.backup.empty()) {
                    return absl::AbortedError(
                        absl::StrCat("shard ", shard, " has no backup"));
                  }
                  return Replicas{.primary = before.backup.front(),
                                  .backup = {}};
                });
}

Future<int64_t> ServerDirectory::GoAlone(rpc::CallContext& call, int32_t shard,
                                         int64_t epoch) {
  if (auto repeated = Repeated(call, shard, epoch)) return *repeated;
  return Decide(shard, epoch, Next::kEpoch,
                [](const Replicas& before) -> absl::StatusOr<Replicas> {
                  return Replicas{.primary = before.primary, .backup = {}};
                });
}

Future<int64_t> ServerDirectory::Enlist(int32_t shard, int64_t epoch,
                                        const RRef<ServerShard>& backup) {
  return Decide(shard, epoch, Next::kSameEpoch,
                [&](const Replicas& before) -> absl::StatusOr<Replicas> {
                  return Replicas{.primary = before.primary,
                                  .backup = {backup}};
                });
}

}  // namespace baton::dist
