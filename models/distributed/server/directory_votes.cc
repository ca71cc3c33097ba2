// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How a line of directories is followed by one without the lost.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/directory_quorum.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

constexpr std::chrono::milliseconds kVoteAgain{100};

}  // namespace

std::vector<int64_t> ServerDirectory::KnownLocked() const {
  std::vector<int64_t> known(static_cast<size_t>(served_.layout.shards()), -1);
  for (size_t i = 0; i < shards_.size(); ++i)
    if (shards_[i].decided.replicas.primary.valid())
      known[i] = shards_[i].decided.number;
  return known;
}

bool ServerDirectory::AgreesLocked(const std::vector<int64_t>& known,
                                   std::map<int32_t, Decided>& lacking) const {
  bool agrees = true;
  for (size_t i = 0; i < known.size(); ++i) {
    const Decided& here = shards_[i].decided;
    if (!here.replicas.primary.valid()) {
      agrees &= here.number <= std::max<int64_t>(known[i], 0);
    } else if (here.number != known[i]) {
      agrees = false;
      if (here.number > known[i]) lacking[static_cast<int32_t>(i)] = here;
    }
  }
  return agrees;
}

absl::Status ServerDirectory::VoteLocked(const std::vector<int32_t>& left,
                                         const std::vector<int64_t>& known) {
  if (voted_.empty()) voted_ = left;
  if (voted_ != left)
    return absl::UnavailableError("the directory voted for another line");
  for (size_t i = 0; i < known.size(); ++i) {
    Decided& here = shards_[i].decided;
    if (!here.replicas.primary.valid())
      here.number = std::max(here.number, known[i]);
  }
  return absl::OkStatus();
}

absl::Status ServerDirectory::Vote(int64_t number, int32_t candidate,
                                   const std::vector<int32_t>& left,
                                   const std::vector<int64_t>& known) {
  std::optional<RRef<ServerDirectory>> asks;
  std::map<int32_t, Decided> lacking;
  {
    const MutexLock lock(mutex_);
    const auto at = static_cast<size_t>(candidate);
    if (number != lines_ || at >= line_.size() || left.empty() ||
        known.size() != static_cast<size_t>(served_.layout.shards()))
      return absl::UnavailableError("the directory is in another line");
    if (voted_.empty() && left.front() > 0 &&
        IsThereLocked(line_.front().owner()))
      return absl::UnavailableError("the first directory of the line is there");
    shards_.resize(known.size());
    if (AgreesLocked(known, lacking)) return VoteLocked(left, known);
    asks = line_[at];
  }
  for (const auto& [shard, decided] : lacking) {
    asks->Async<&ServerDirectory::Learn>(number, shard, decided)
        .OnReady([](const absl::Status&) {});
  }
  return absl::UnavailableError("one of two directories lacks decisions");
}

// A worker that was started again is proof that its former directory is gone.
bool ServerDirectory::IsGoneLocked(size_t place) const {
  const rpc::WorkerInfo& worker = line_[place].owner();
  return !apart_ && !IsThereLocked(worker) && IsThereLocked(worker.name);
}

// While most of the line seem lost, this part of the cluster may be the smaller
// one, whose vote would be for nothing.
bool ServerDirectory::MayProposeLocked() {
  if (shards_.empty() || line_.empty()) return false;
  std::vector<int32_t> left;
  std::vector<bool> there(line_.size());
  for (size_t i = 0; i < line_.size(); ++i) {
    const rpc::WorkerInfo& worker = line_[i].owner();
    const bool is_there = i == place_ || IsThereLocked(worker);
    there[i] = is_there || IsGoneLocked(i);
    if (is_there) left.push_back(static_cast<int32_t>(i));
  }
  if (!IsQuorum(there) || left.front() != static_cast<int32_t>(place_))
    return false;
  if (voted_.empty() && left.size() < line_.size()) voted_ = left;
  return !voted_.empty();
}

void ServerDirectory::StrikeOffTheLost() {
  int64_t number = 0;
  std::vector<int32_t> left;
  {
    const MutexLock lock(mutex_);
    if (proposing_ || !MayProposeLocked()) return;
    proposing_ = true;
    number = lines_;
    left = voted_;
  }
  AskForVotes(number, left)
      .OnReady(
          [self = shared_from_this(), number, left](const absl::Status& votes) {
            self->agent_.executor().Post([self, number, left, votes] {
              self->OnVotes(number, left, votes);
            });
          });
}

Future<void> ServerDirectory::AskForVotes(int64_t number,
                                          const std::vector<int32_t>& left) {
  DirectoryLine line;
  std::vector<bool> agreed;
  std::vector<int64_t> known;
  int32_t here = 0;
  {
    const MutexLock lock(mutex_);
    line = line_;
    here = static_cast<int32_t>(place_);
    known = KnownLocked();
    for (size_t i = 0; i < line.size(); ++i)
      agreed.push_back(i == place_ || IsGoneLocked(i));
  }
  std::map<size_t, Future<void>> asking;
  for (size_t i = 0; i < line.size(); ++i) {
    if (agreed[i]) continue;
    asking[i] = line[i].Async<&ServerDirectory::Vote>(
        rpc::CallOptions{.timeout = kDirectoryMayBeLost}, number, here, left,
        known);
  }
  return WhenQuorum(agreed, asking);
}

void ServerDirectory::OnVotes(int64_t number, const std::vector<int32_t>& left,
                              const absl::Status& votes) {
  DirectoryLine before;
  size_t here = 0;
  bool is_next = false;  // another one's votes have led to the next line
  {
    const MutexLock lock(mutex_);
    proposing_ = false;
    before = line_;
    here = place_;
    is_next = number != lines_;
  }
  if (is_next) {
    StrikeOffTheLost();
    return;
  }
  if (!votes.ok()) {
    TellAll();
    agent_.timer().After(
        kVoteAgain, [weak = weak_from_this(), &executor = agent_.executor()] {
          executor.Post([weak] {
            if (const auto self = weak.lock()) self->StrikeOffTheLost();
          });
        });
    return;
  }
  for (const int32_t i : left) {
    const auto at = static_cast<size_t>(i);
    if (at == here || at >= before.size()) continue;
    before[at]
        .Async<&ServerDirectory::Succeed>(number, left)
        .OnReady([](const absl::Status&) {});
  }
  Succeed(number, left);
  TellAll();  // those that voted without having heard of a shard
  if (here == 0 || left.front() != static_cast<int32_t>(here)) return;
  LogWarning("worker ", agent_.self().name,
             " has the directory of parameter servers from now on");
  LookAgain(kLookAgain);
}

// A vote is for a directory that knows the same, so that whatever was decided
// in a line is known to a quorum of the next one.
void ServerDirectory::TellAll() {
  std::map<int32_t, Decided> known;
  {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < shards_.size(); ++i)
      if (shards_[i].decided.replicas.primary.valid())
        known[static_cast<int32_t>(i)] = shards_[i].decided;
  }
  for (const auto& [shard, decided] : known)
    Tell(shard, decided, {.timeout = kDirectoryMayBeLost})
        .OnReady([](const absl::Status&) {});
}

void ServerDirectory::Succeed(int64_t number,
                              const std::vector<int32_t>& left) {
  DirectoryLine next, before;  // destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    if (number != lines_) return;
    size_t place = line_.size();
    for (const int32_t i : left) {
      const auto at = static_cast<size_t>(i);
      if (at >= line_.size()) return;
      if (at == place_) place = next.size();
      next.push_back(line_[at]);
    }
    if (place == line_.size()) return;  // struck off
    ++lines_;
    place_ = place;
    voted_.clear();
    apart_ = false;
    before = std::exchange(line_, next);
  }
  StrikeOffTheLost();  // those that were lost meanwhile
}

}  // namespace baton::dist
