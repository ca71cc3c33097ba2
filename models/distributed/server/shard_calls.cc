// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

constexpr std::chrono::milliseconds kTryAgain{10};
// A reachable directory answers within this time.
constexpr std::chrono::milliseconds kLongestQuestion{500};
constexpr std::chrono::milliseconds kLongestPing{200};

}  // namespace

std::shared_ptr<ShardCalls> ShardCalls::Make(
    rpc::Agent& agent, const DirectoryLine& directories, int shards,
    std::chrono::milliseconds timeout) {
  std::shared_ptr<ShardCalls> calls(
      new ShardCalls(agent, directories, shards, timeout));
  agent.WatchMembers(
      [weak = std::weak_ptr<ShardCalls>(calls)](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr || event.kind == rpc::MemberEvent::Kind::kJoined)
          return;
        // The watcher's thread must not wait for the mutex.
        self->agent_.executor().Post([self, event] { self->OnMember(event); });
      });
  return calls;
}

// Whether the server failed rather than the request: another server may answer.
// A server that shuts down returns FailedPrecondition.
bool ShardCalls::MayTryAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsFailedPrecondition(status);
}

absl::Status ShardCalls::EndOf(int32_t shard, Clock::time_point deadline,
                               const absl::Status& why) {
  // A DeadlineExceeded may come from a busy directory.
  if (!MayTryAgain(why) && !absl::IsDeadlineExceeded(why)) return why;
  if (Clock::now() + kTryAgain < deadline) return absl::OkStatus();
  return Annotate(
      why, absl::StrCat("no server of shard ", shard, " has answered in time"));
}

RRef<ServerDirectory> ShardCalls::directory() const {
  const MutexLock lock(mutex_);
  return directories_.front();
}

int64_t ShardCalls::EpochOf(int32_t shard) const {
  const MutexLock lock(mutex_);
  return shards_[static_cast<size_t>(shard)].place.epoch;
}

std::optional<ShardCalls::Made> ShardCalls::Begin(int32_t shard,
                                                  std::function<void()> again) {
  const MutexLock lock(mutex_);
  Entry& entry = shards_[static_cast<size_t>(shard)];
  if (!entry.found) return std::nullopt;
  const uint64_t number = ++calls_;
  entry.under_way[number] = std::move(again);
  return Made{.place = entry.place, .number = number};
}

bool ShardCalls::End(int32_t shard, uint64_t number) {
  std::function<void()> again;  // destroyed, with what it captures, after the
                                // lock is released
  const MutexLock lock(mutex_);
  auto& under_way = shards_[static_cast<size_t>(shard)].under_way;
  const auto found = under_way.find(number);
  if (found == under_way.end()) return false;
  again = std::move(found->second);
  under_way.erase(found);
  return true;
}

void ShardCalls::Doubt(int32_t shard, int64_t epoch) {
  const MutexLock lock(mutex_);
  Entry& entry = shards_[static_cast<size_t>(shard)];
  if (entry.place.epoch == epoch) entry.found = false;
}

void ShardCalls::Find(int32_t shard, std::chrono::milliseconds left,
                      Then then) {
  int64_t after = 0;
  {
    const MutexLock lock(mutex_);
    Entry& entry = shards_[static_cast<size_t>(shard)];
    entry.waiting.push_back(std::move(then));
    if (std::exchange(entry.asking, true)) return;
    after = entry.place.epoch;
  }
  directory()
      .Async<&ServerDirectory::Locate>(
          rpc::CallOptions{.timeout = std::min(left, kLongestQuestion)}, shard,
          after)
      .OnReady([self = shared_from_this(),
                shard](const absl::StatusOr<ShardPlace>& place) {
        self->OnPlace(shard, place);
      });
}

void ShardCalls::OnPlace(int32_t shard,
                         const absl::StatusOr<ShardPlace>& place) {
  if (!place.ok()) {
    OnFound(shard, place.status());
    return;
  }
  ShardPlace before;  // its handle is destroyed after the lock is released
  std::map<uint64_t, std::function<void()>> again;
  bool is_other = false;
  {
    const MutexLock lock(mutex_);
    Entry& entry = shards_[static_cast<size_t>(shard)];
    if (place->primary.has_value()) before = std::exchange(entry.place, *place);
    is_other = place->primary.has_value() &&
               (!before.primary.has_value() ||
                !IsSame(before.primary->owner(), place->primary->owner()));
    if (is_other) again.swap(entry.under_way);
  }
  if (!is_other) {
    AskIfBack(shard);
    return;
  }
  OnFound(shard, absl::OkStatus());
  for (const auto& [number, call] : again) call();
}

// A call to a worker whose connection broke may wait until that worker comes
// back; meanwhile another server may have the shard.
void ShardCalls::AskIfBack(int32_t shard) {
  rpc::WorkerInfo server;
  {
    const MutexLock lock(mutex_);
    server = shards_[static_cast<size_t>(shard)].place.primary->owner();
  }
  agent_
      .Async<&server_calls::Ping>(server,
                                  rpc::CallOptions{.timeout = kLongestPing})
      .OnReady([self = shared_from_this(), shard,
                server](const absl::StatusOr<bool>& there) {
        self->OnFound(
            shard, there.ok()
                       ? absl::OkStatus()
                       : absl::UnavailableError(absl::StrCat(
                             "worker ", server.name,
                             " does not answer: ", there.status().message())));
      });
}

void ShardCalls::OnFound(int32_t shard, const absl::Status& found) {
  std::vector<Then> waiting;
  {
    const MutexLock lock(mutex_);
    Entry& entry = shards_[static_cast<size_t>(shard)];
    entry.asking = false;
    entry.found = found.ok();
    waiting.swap(entry.waiting);
  }
  for (const Then& then : waiting) then(found);
}

void ShardCalls::OnMember(const rpc::MemberEvent& event) {
  std::vector<std::pair<int32_t, int64_t>> lost;  // shards and their epochs
  {
    const MutexLock lock(mutex_);
    if (event.kind != rpc::MemberEvent::Kind::kBroken)
      StrikeOff(event.worker, directories_);
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      const ShardPlace& place = shards_[shard].place;
      if (shards_[shard].found && IsSame(place.primary->owner(), event.worker))
        lost.emplace_back(static_cast<int32_t>(shard), place.epoch);
    }
  }
  for (const auto& [shard, epoch] : lost) {
    Doubt(shard, epoch);
    Seek(shard, Clock::now() + timeout_);
  }
}

void ShardCalls::Seek(int32_t shard, Clock::time_point deadline) {
  Find(shard, timeout_,
       [self = weak_from_this(), shard, deadline](const absl::Status& found) {
         const auto calls = self.lock();
         if (found.ok() || calls == nullptr) return;
         if (!EndOf(shard, deadline, found).ok()) return;
         calls->Later([self, shard, deadline] {
           if (const auto calls = self.lock()) calls->Seek(shard, deadline);
         });
       });
}

void ShardCalls::Later(std::function<void()> then) {
  agent_.timer().After(
      kTryAgain, [self = shared_from_this(), then = std::move(then)]() mutable {
        self->agent_.executor().Post(std::move(then));
      });
}

}  // namespace baton::dist
