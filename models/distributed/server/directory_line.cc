// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How directories succeed each other.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

// A successor that does not answer for this long may be lost, and the caller no
// longer waits for it; it is still told.
constexpr std::chrono::milliseconds kFollowerMayBeLost{100};
constexpr std::chrono::seconds kLookAgain{2};

// Done when all calls are, whatever their results.
Future<void> AllEnded(const std::vector<Future<void>>& calls) {
  const Promise<void> ended;
  if (calls.empty()) ended.Set(absl::OkStatus());
  const auto left = std::make_shared<std::atomic<size_t>>(calls.size());
  for (const Future<void>& call : calls) {
    call.OnReady([ended, left](const absl::Status&) {
      if (left->fetch_sub(1) == 1) ended.Set(absl::OkStatus());
    });
  }
  return ended.future();
}

Future<void> WithinTime(rpc::Agent& agent, std::chrono::milliseconds time,
                        const Future<void>& all) {
  if (all.ready()) return all;
  const Promise<void> first;
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto end = [first, over] {
    if (!over->exchange(true)) first.Set(absl::OkStatus());
  };
  all.OnReady([end](const absl::Status&) { end(); });
  agent.timer().After(
      time, [&executor = agent.executor(), end] { executor.Post(end); });
  return first.future();
}

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
    if (number < lines_) return line;
    lines_ = number;
    place_ = static_cast<size_t>(place);
    return std::exchange(line_, line);
  }();
}

DirectoryLine ServerDirectory::Line() const {
  const MutexLock lock(mutex_);
  return line_;
}

void ServerDirectory::Set(std::vector<Replicas> shards) {
  std::vector<Entry> entries;
  for (Replicas& replicas : shards)
    entries.push_back({.decided = {.replicas = std::move(replicas)}});
  std::vector<Future<void>> telling;
  for (size_t shard = 0; shard < entries.size(); ++shard)
    telling.push_back(
        Tell(static_cast<int32_t>(shard), entries[shard].decided));
  {
    const MutexLock lock(mutex_);
    shards_.swap(entries);
  }
  for (const Future<void>& told : telling) (void)told.Await(kNoLimit);
}

void ServerDirectory::Learn(int32_t shard, const Decided& decided) {
  Replicas before;  // its handles are destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    const auto at = static_cast<size_t>(shard);
    if (line_.empty() || shard < 0 || shard >= served_.layout.shards()) return;
    if (shards_.empty())
      shards_.resize(static_cast<size_t>(served_.layout.shards()));
    Decided& known = shards_[at].decided;
    if (known.replicas.primary.valid() && decided.number <= known.number)
      return;
    before = std::exchange(known, decided).replicas;
  }
  Answer(shard);
}

void ServerDirectory::Close() {
  for (const RRef<ServerDirectory>& other : Line()) {
    if (other.is_owner()) continue;
    other.Async<&ServerDirectory::Clear>().OnReady([](const absl::Status&) {});
  }
  Clear();
}

bool ServerDirectory::IsThereLocked(const rpc::Target& worker) const {
  const auto found = agent_.Find(worker);
  return found.ok() && !lost_.contains(found->incarnation);
}

absl::Status ServerDirectory::InChargeLocked() const {
  size_t there = 0;
  bool has_first = false;
  for (size_t i = 0; i < line_.size(); ++i) {
    const rpc::WorkerInfo& worker = line_[i].owner();
    if (i < place_ && IsThereLocked(worker)) {
      return absl::UnavailableError(
          absl::StrCat("worker ", worker.name, " has the directory"));
    }
    if (!IsThereLocked(worker.name)) continue;
    ++there;
    if (i == 0) has_first = true;
  }
  if (2 * there > line_.size() || (2 * there == line_.size() && has_first) ||
      line_.empty())
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("of ", line_.size(), " workers with directories ", there,
                   " are there, which may be the smaller part of a cluster"));
}

Future<void> ServerDirectory::Tell(int32_t shard,
                                   const Decided& decided) const {
  DirectoryLine behind;
  {
    const MutexLock lock(mutex_);
    for (size_t i = place_ + 1; i < line_.size(); ++i)
      if (IsThereLocked(line_[i].owner())) behind.push_back(line_[i]);
  }
  std::vector<Future<void>> telling;
  for (const RRef<ServerDirectory>& other : behind)
    telling.push_back(other.Async<&ServerDirectory::Learn>(shard, decided));
  return WithinTime(agent_, kFollowerMayBeLost, AllEnded(telling));
}

void ServerDirectory::OnMember(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  if (event.kind == Kind::kBroken) return;
  bool follows = false;
  {
    const MutexLock lock(mutex_);
    if (event.kind == Kind::kJoined) {
      lost_.erase(event.worker.incarnation);
    } else {
      lost_.insert(event.worker.incarnation);
    }
    if (shards_.empty() || !InChargeLocked().ok()) return;
    follows = place_ > 0;
  }
  StrikeOffTheLost();
  if (!follows) return;
  LogWarning("worker ", agent_.self().name,
             " has the directory of parameter servers from now on");
  LookAgain(kLookAgain);
}

void ServerDirectory::StrikeOffTheLost() {
  DirectoryLine left, before;
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    for (const RRef<ServerDirectory>& directory : line_)
      if (IsThereLocked(directory.owner())) left.push_back(directory);
    if (left.size() == line_.size()) return;
    number = ++lines_;
    place_ = 0;
    before = std::exchange(line_, left);
  }
  for (size_t i = 1; i < left.size(); ++i) {
    left[i]
        .Async<&ServerDirectory::Stand>(left, static_cast<int32_t>(i), number)
        .OnReady([](const absl::Status&) {});
  }
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
