// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/incarnation.h"

namespace baton::rpc {

std::string Target::ToString() const {
  if (const auto* name = std::get_if<std::string>(&key_)) return *name;
  if (const auto* rank = std::get_if<Rank>(&key_)) {
    return absl::StrCat("rank ", static_cast<int>(*rank));
  }
  return std::get<WorkerInfo>(key_).name;
}

namespace internal {
namespace {

constexpr size_t kRememberIncarnations = 16;
constexpr size_t kRememberRemoved = 1024;
constexpr size_t kNamed = 20;  // in an error

bool Matches(const Target& target, const WorkerInfo& worker) {
  if (const auto* name = std::get_if<std::string>(&target.key())) {
    return *name == worker.name;
  }
  if (const auto* rank = std::get_if<Rank>(&target.key())) {
    return *rank == worker.rank;
  }
  return std::get<WorkerInfo>(target.key()).name == worker.name;
}

}  // namespace

Peers::Observed Peers::Add(const WorkerInfo& peer) {
  Observed added;
  if (peer.name == self_.name) return added;
  MutexLock lock(mutex_);
  const auto removed = removed_.find(peer.name);
  if (removed != removed_.end() && removed->second.leaving &&
      removed->second.info.incarnation == peer.incarnation) {
    added.stale = true;
    return added;
  }
  const bool known = peers_.contains(peer.name);
  Peer& entry = EnterLocked(peer);
  auto replaced = ReplaceLocked(entry, peer);
  if (entry.state == State::kGone) entry.state = State::kNew;
  entry.listed = true;
  TakeRankLocked(entry, true);
  NewsLocked(entry);
  // A worker that was removed had been given up then, so nothing is replaced
  // now.
  if (known) added.replaced = std::move(replaced);
  added.joined = !known || added.replaced.has_value();
  return added;
}

Peers::Peer& Peers::EnterLocked(const WorkerInfo& peer) {
  auto [place, added] = peers_.try_emplace(peer.name);
  if (!added) return place->second;
  auto removed = removed_.extract(peer.name);
  if (removed.empty()) {
    place->second.info = peer;
  } else {
    place->second = std::move(removed.mapped());
    std::erase(removed_order_, peer.name);
  }
  NewsLocked(place->second);
  return place->second;
}

void Peers::TakeRankLocked(Peer& peer, bool anyway) {
  Peer*& holder = by_rank_[static_cast<int32_t>(peer.info.rank)];
  if (anyway || holder == nullptr || holder->state == State::kLost ||
      holder->state == State::kGone) {
    holder = &peer;
  }
}

void Peers::GiveRankLocked(const Peer& peer) {
  auto found = by_rank_.find(static_cast<int32_t>(peer.info.rank));
  if (found != by_rank_.end() && found->second == &peer) by_rank_.erase(found);
}

std::optional<WorkerInfo> Peers::ReplaceLocked(Peer& peer,
                                               const WorkerInfo& by) {
  GiveRankLocked(peer);
  if (SameWorker(peer.info, by)) {
    const uint64_t incarnation =
        std::max(peer.info.incarnation, by.incarnation);
    peer.info = by;
    peer.info.incarnation = incarnation;
    TakeRankLocked(peer, false);
    return std::nullopt;
  }
  const WorkerInfo old = peer.info;
  std::deque<uint64_t> past = std::move(peer.past);
  past.push_back(old.incarnation);
  if (past.size() > kRememberIncarnations) past.pop_front();
  const bool listed = peer.listed;
  peer = Peer{};
  peer.info = by;
  peer.listed = listed;
  peer.past = std::move(past);
  TakeRankLocked(peer, false);
  NewsLocked(peer);
  return old;
}

bool Peers::IsPastLocked(const WorkerInfo& worker) const {
  for (const auto* peers : {&peers_, &removed_}) {
    auto found = peers->find(worker.name);
    if (found == peers->end()) continue;
    const std::deque<uint64_t>& past = found->second.past;
    return std::find(past.begin(), past.end(), worker.incarnation) !=
           past.end();
  }
  return false;
}

std::optional<Peers::Removed> Peers::Remove(const WorkerInfo& worker,
                                            const absl::Status& why) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(worker);
  if (peer == nullptr) return std::nullopt;
  return RemoveLocked(*peer, why);
}

std::optional<Peers::Removed> Peers::StrikeOff(const WorkerInfo& worker,
                                               const absl::Status& why) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(worker);
  if (peer == nullptr) return std::nullopt;
  peer->listed = false;
  if (peer->state == State::kUp) return std::nullopt;
  return RemoveLocked(*peer, why);
}

Peers::Removed Peers::RemoveLocked(Peer& peer, const absl::Status& why) {
  const Removed removed{peer.info, peer.state == State::kGone};
  const std::string& name = removed.info.name;
  GiveRankLocked(peer);
  Peer kept = std::move(peer);
  peers_.erase(name);
  // If nothing was sent or received yet, there is no epoch to end.
  const bool spoken = kept.messages_sent + kept.messages_received > 0 ||
                      kept.control.waiting() > 0;
  if (spoken && !removed.was_gone) kept.control.Reset();
  // An incarnation that has left does not come back.
  if (kept.leaving) kept.past.push_back(removed.info.incarnation);
  kept.state = State::kNew;
  kept.listed = false;
  kept.why = why;
  removed_[name] = std::move(kept);
  removed_order_.push_back(name);
  if (removed_order_.size() > kRememberRemoved) {
    removed_.erase(removed_order_.front());
    removed_order_.pop_front();
  }
  return removed;
}

const Peers::Peer* Peers::TargetLocked(const Target& target) const {
  if (const auto* rank = std::get_if<Rank>(&target.key())) {
    const auto found = by_rank_.find(static_cast<int32_t>(*rank));
    return found == by_rank_.end() ? nullptr : found->second;
  }
  const auto* name = std::get_if<std::string>(&target.key());
  const auto found = peers_.find(
      name != nullptr ? *name : std::get<WorkerInfo>(target.key()).name);
  return found == peers_.end() ? nullptr : &found->second;
}

absl::Status Peers::UnknownLocked(const Target& target) const {
  for (auto it = removed_order_.rbegin(); it != removed_order_.rend(); ++it) {
    const Peer& removed = removed_.at(*it);
    if (!Matches(target, removed.info)) continue;
    return absl::UnavailableError(absl::StrCat(
        "worker ", *it, " is not there any more: ", removed.why.message()));
  }
  std::vector<std::string> names{self_.name};
  for (const auto& [name, peer] : peers_) names.push_back(name);
  const size_t all = names.size();
  const size_t named = std::min(all, kNamed);
  std::partial_sort(names.begin(), names.begin() + static_cast<long>(named),
                    names.end());
  names.resize(named);
  return absl::NotFoundError(absl::StrCat(
      "no worker is called ", target.ToString(),
      "; there are: ", absl::StrJoin(names, ", "),
      all > named ? absl::StrCat(" and ", all - named, " more") : ""));
}

absl::StatusOr<WorkerInfo> Peers::Find(const Target& target) const {
  WorkerInfo found = self_;
  if (!Matches(target, self_)) {
    MutexLock lock(mutex_);
    const Peer* peer = TargetLocked(target);
    if (peer == nullptr) return UnknownLocked(target);
    found = peer->info;
  }
  const auto* wanted = std::get_if<WorkerInfo>(&target.key());
  if (wanted != nullptr && !SameWorker(*wanted, found)) {
    return absl::UnavailableError(
        absl::StrCat("worker ", found.name,
                     " was started again; what it had before is lost"));
  }
  return found;
}

std::vector<WorkerInfo> Peers::All() const {
  std::vector<WorkerInfo> all{self_};
  {
    MutexLock lock(mutex_);
    for (const auto& [name, peer] : peers_) {
      if (peer.state != State::kGone) all.push_back(peer.info);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.rank, a.name) < std::pair(b.rank, b.name);
  });
  return all;
}

Peers::Observed Peers::Observe(const WorkerInfo& from, uint64_t bytes) {
  Observed observed;
  MutexLock lock(mutex_);
  const auto same = peers_.find(from.name);
  if (same != peers_.end() && same->second.state == State::kUp &&
      same->second.info == from) {
    CountReceivedLocked(same->second, bytes);
    return observed;
  }
  observed.stale = IsPastLocked(from);
  if (observed.stale) return observed;
  const bool known = peers_.contains(from.name);
  Peer& peer = EnterLocked(from);
  if (!(peer.info == from)) {
    auto replaced = ReplaceLocked(peer, from);
    if (known) observed.replaced = std::move(replaced);
  }
  if (!known) TakeRankLocked(peer, false);
  observed.joined =
      !known || observed.replaced.has_value() || peer.state == State::kGone;
  if (peer.state == State::kLost) peer.control.Resume();
  peer.state = State::kUp;
  CountReceivedLocked(peer, bytes);
  return observed;
}

void Peers::CountReceivedLocked(Peer& peer, uint64_t bytes) {
  NewsLocked(peer);
  ++peer.messages_received;
  peer.bytes_received += bytes;
}

bool Peers::Knows(const WorkerInfo& worker) const {
  MutexLock lock(mutex_);
  const auto found = peers_.find(worker.name);
  return found != peers_.end() &&
         found->second.info.incarnation == worker.incarnation;
}

uint64_t Peers::News(const std::string& name) const {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  return found == peers_.end() ? 0 : found->second.news;
}

std::optional<WorkerInfo> Peers::ThereSince(const std::string& name,
                                            uint64_t news) const {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  if (found == peers_.end() || found->second.news != news ||
      found->second.state == State::kLost ||
      found->second.state == State::kGone) {
    return std::nullopt;
  }
  return found->second.info;
}

bool Peers::FirstTime(const std::string& name, uint64_t call) {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  return found != peers_.end() && found->second.seen.FirstTime(call);
}

uint64_t Peers::NextCall(const std::string& name) {
  MutexLock lock(mutex_);
  if (name == self_.name) return next_self_call_++;
  auto found = peers_.find(name);
  return found == peers_.end() ? 0 : found->second.next_call++;
}

void Peers::CountSent(const std::string& name, uint64_t bytes) {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  if (found == peers_.end()) return;
  ++found->second.messages_sent;
  found->second.bytes_sent += bytes;
}

Peers::Peer* Peers::FindLocked(const WorkerInfo& worker) {
  auto found = peers_.find(worker.name);
  if (found == peers_.end() || !SameWorker(found->second.info, worker)) {
    return nullptr;
  }
  return &found->second;
}

uint64_t Peers::MarkLost(const WorkerInfo& worker, bool* leaving) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(worker);
  if (peer == nullptr || peer->state == State::kGone) return 0;
  peer->state = State::kLost;
  NewsLocked(*peer);
  *leaving = peer->leaving;
  return ++peer->losses;
}

bool Peers::GiveUp(const WorkerInfo& worker, uint64_t loss,
                   const absl::Status& why) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(worker);
  if (peer == nullptr || peer->state != State::kLost || peer->losses != loss) {
    return false;
  }
  peer->state = State::kGone;
  peer->control.Reset();
  NewsLocked(*peer);
  if (peer->leaving || !peer->listed) RemoveLocked(*peer, why);
  return true;
}

std::vector<std::pair<WorkerInfo, uint64_t>> Peers::Lost() const {
  std::vector<std::pair<WorkerInfo, uint64_t>> lost;
  MutexLock lock(mutex_);
  for (const auto& [name, peer] : peers_) {
    if (peer.state == State::kLost) lost.emplace_back(peer.info, peer.losses);
  }
  return lost;
}

void Peers::MarkLeaving(const WorkerInfo& worker) {
  MutexLock lock(mutex_);
  if (Peer* peer = FindLocked(worker)) peer->leaving = true;
}

uint64_t Peers::Epoch(const std::string& name) const {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  return found == peers_.end() ? 0 : found->second.control.epoch();
}

Peers::Spoken Peers::Compare(const WorkerInfo& from, uint64_t epoch) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(from);
  if (peer == nullptr || epoch == peer->control.epoch()) return Spoken::kNow;
  if (epoch < peer->control.epoch()) {
    peer->control.TellEpoch();
    return Spoken::kEarlier;
  }
  peer->control.Follow(epoch);
  return Spoken::kLater;
}

bool Peers::Push(const WorkerInfo& to, ControlItem item,
                 ControlChannel::Acked acked) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(to);
  if (peer == nullptr || peer->state == State::kGone) return false;
  peer->control.Push(item, std::move(acked));
  return true;
}

ControlChannel::Received Peers::Receive(const WorkerInfo& from,
                                        const ControlFrame& frame) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(from);
  return peer == nullptr ? ControlChannel::Received{}
                         : peer->control.Receive(frame);
}

std::optional<ControlFrame> Peers::Take(
    const std::string& name, std::chrono::milliseconds resend_after) {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  if (found == peers_.end()) return std::nullopt;
  Peer& peer = found->second;
  const auto now = Clock::now();
  if (!peer.control.Due(now, resend_after)) return std::nullopt;
  ControlFrame frame = peer.control.Take(now, resend_after);
  frame.to = peer.info.incarnation;
  return frame;
}

std::vector<std::string> Peers::WithControlDue(
    std::chrono::milliseconds resend_after) const {
  std::vector<std::string> due;
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  for (const auto& [name, peer] : peers_) {
    if (peer.control.Due(now, resend_after)) due.push_back(name);
  }
  return due;
}

size_t Peers::ControlWaiting() const {
  MutexLock lock(mutex_);
  size_t waiting = 0;
  for (const auto& [name, peer] : peers_) {
    const bool there = peer.state == State::kNew || peer.state == State::kUp;
    if (there) waiting += peer.control.waiting();
  }
  return waiting;
}

std::vector<PeerInfo> Peers::Infos() const {
  static constexpr const char* kStates[] = {"new", "up", "lost", "gone"};
  std::vector<PeerInfo> infos;
  MutexLock lock(mutex_);
  for (const auto& [name, peer] : peers_) {
    PeerInfo info;
    info.worker = peer.info;
    info.state = kStates[static_cast<int>(peer.state)];
    info.messages_sent = peer.messages_sent;
    info.messages_received = peer.messages_received;
    info.bytes_sent = peer.bytes_sent;
    info.bytes_received = peer.bytes_received;
    info.control_waiting = peer.control.waiting();
    infos.push_back(std::move(info));
  }
  std::sort(infos.begin(), infos.end(), [](const auto& a, const auto& b) {
    return a.worker.name < b.worker.name;
  });
  return infos;
}

}  // namespace internal
}  // namespace baton::rpc
