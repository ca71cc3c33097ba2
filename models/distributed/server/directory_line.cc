// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How directories succeed each other.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/directory_quorum.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

constexpr std::chrono::milliseconds kClearAgain{100};

}  // namespace

std::shared_ptr<ServerDirectory> ServerDirectory::Make(
    rpc::CallContext& call, const ServedKeys& served) {
  return MakeAt(call.agent(), served);
}

std::shared_ptr<ServerDirectory> ServerDirectory::MakeAt(
    rpc::Agent& agent, const ServedKeys& served) {
  auto made = std::make_shared<ServerDirectory>(agent, served);
  agent.WatchMembers(
      [weak = made->weak_from_this()](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // The watcher's thread must not wait for the mutex.
        self->agent_.executor().Post([self, event] { self->OnMember(event); });
      });
  return made;
}

void ServerDirectory::Stand(const DirectoryLine& line, int32_t place,
                            int64_t number) {
  const DirectoryLine before = [&] {  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    if (cleared_ || number < lines_) return line;
    lines_ = number;
    place_ = static_cast<size_t>(place);
    voted_.clear();
    apart_ = false;
    return std::exchange(line_, line);
  }();
}

DirectoryLine ServerDirectory::Line() const {
  const MutexLock lock(mutex_);
  return line_;
}

// Nobody waits for a decision yet, so a directory may take its time.
absl::Status ServerDirectory::Set(std::vector<Replicas> shards) {
  std::vector<Entry> entries;
  for (Replicas& replicas : shards)
    entries.push_back({.decided = {.replicas = std::move(replicas)}});
  std::vector<Future<void>> telling;
  for (size_t shard = 0; shard < entries.size(); ++shard)
    telling.push_back(
        Tell(static_cast<int32_t>(shard), entries[shard].decided, {}));
  {
    const MutexLock lock(mutex_);
    shards_.swap(entries);
  }
  return WaitAll(telling).Await(kNoLimit);
}

absl::Status ServerDirectory::Learn(int64_t number, int32_t shard,
                                    const Decided& decided) {
  Replicas before;  // its handles are destroyed after the lock is released
  absl::Status status;
  {
    const MutexLock lock(mutex_);
    const auto at = static_cast<size_t>(shard);
    if (line_.empty() || number != lines_ || shard < 0 ||
        shard >= served_.layout.shards())
      return absl::UnavailableError("the directory is in another line");
    if (!voted_.empty())
      status = absl::UnavailableError("another line is being voted for");
    if (shards_.empty())
      shards_.resize(static_cast<size_t>(served_.layout.shards()));
    Decided& known = shards_[at].decided;
    const bool is_new = known.replicas.primary.valid()
                            ? decided.number > known.number
                            : decided.number >= known.number;
    if (!is_new) return status;
    before = std::exchange(known, decided).replicas;
  }
  Answer(shard);
  return status;
}

void ServerDirectory::Close() {
  DirectoryLine others;  // this worker may have one of them, too
  {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < line_.size(); ++i)
      if (i != place_) others.push_back(line_[i]);
  }
  for (const RRef<ServerDirectory>& other : others) ClearAt(other);
  Clear();
}

// Directories that are not cleared keep each other, and the shards. That of a
// lost worker, whose handle is not confirmed any more, is gone.
void ServerDirectory::ClearAt(const RRef<ServerDirectory>& other) {
  other.Async<&ServerDirectory::Clear>().OnReady(
      [self = shared_from_this(), other](const absl::Status& cleared) {
        const bool unanswered =
            absl::IsUnavailable(cleared) || absl::IsDeadlineExceeded(cleared);
        if (!unanswered || !other.confirmed()) return;
        rpc::Agent& agent = self->agent_;
        agent.timer().After(
            kClearAgain, [self, other, &executor = agent.executor()] {
              executor.Post([self, other] { self->ClearAt(other); });
            });
      });
}

bool ServerDirectory::IsThereLocked(const rpc::Target& worker) const {
  const auto found = agent_.Find(worker);
  return found.ok() && !lost_.contains(found->incarnation);
}

absl::Status ServerDirectory::InChargeLocked() const {
  if (place_ > 0) {
    return absl::UnavailableError(absl::StrCat(
        "worker ", line_.front().owner().name, " has the directory"));
  }
  if (voted_.empty()) return absl::OkStatus();
  return absl::UnavailableError("the line of directories is about to change");
}

Future<void> ServerDirectory::Tell(int32_t shard, const Decided& decided,
                                   const rpc::CallOptions& options) const {
  DirectoryLine line;
  size_t here = 0;
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    line = line_;
    here = place_;
    number = lines_;
  }
  std::vector<bool> agreed(line.size());
  std::map<size_t, Future<void>> telling;
  for (size_t i = 0; i < line.size(); ++i) {
    agreed[i] = i == here;
    if (i == here) continue;
    telling[i] =
        line[i].Async<&ServerDirectory::Learn>(options, number, shard, decided);
  }
  return WhenQuorum(agreed, telling);
}

bool ServerDirectory::IsOfLineLocked(const rpc::WorkerInfo& worker) const {
  return std::any_of(line_.begin(), line_.end(), [&](const auto& directory) {
    return IsSame(directory.owner(), worker);
  });
}

void ServerDirectory::OnMember(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  if (event.kind == Kind::kBroken) return;
  {
    const MutexLock lock(mutex_);
    bool may_be_apart = false;
    if (event.kind == Kind::kJoined) {
      may_be_apart = lost_.erase(event.worker.incarnation) > 0;
    } else {
      lost_.insert(event.worker.incarnation);
      // It was silent, and its connection did not end.
      may_be_apart = absl::IsDeadlineExceeded(event.cause);
    }
    if (may_be_apart && IsOfLineLocked(event.worker)) apart_ = true;
  }
  StrikeOffTheLost();
}

void ServerDirectory::LookAgain(std::chrono::milliseconds delay) {
  agent_.timer().After(
      delay, [weak = weak_from_this(), &executor = agent_.executor()] {
        executor.Post([weak] {
          if (const auto self = weak.lock()) self->EndWithTrainers();
        });
      });
}

// The maker of the servers is gone and cannot close them.
void ServerDirectory::EndWithTrainers() {
  std::vector<Future<ShardReport>> asking;
  {
    const MutexLock lock(mutex_);
    for (const Entry& entry : shards_)
      asking.push_back(
          entry.decided.replicas.primary.Async<&ServerShard::Report>());
  }
  if (asking.empty()) return;
  WaitAll(asking).OnReady(
      [self = shared_from_this()](
          const absl::StatusOr<std::vector<ShardReport>>& reports) {
        const bool over =
            reports.ok() &&
            std::all_of(reports->begin(), reports->end(),
                        [](const auto& shard) { return shard.trainers == 0; });
        if (over) {
          self->Close();
        } else {
          self->LookAgain(kLookAgain);
        }
      });
}

}  // namespace baton::dist
