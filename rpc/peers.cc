// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "rpc/worker.h"

namespace baton::rpc::internal {
namespace {

constexpr size_t kRememberGaps = 65'536;

}  // namespace

bool SeenNumbers::FirstTime(uint64_t number) {
  if (number == 0 || number == std::numeric_limits<uint64_t>::max()) {
    return false;
  }
  if (number >= next_) {
    if (number > next_) missing_.emplace_hint(missing_.end(), next_, number);
    next_ = number + 1;
    ForgetOldestGaps();
    return true;
  }
  auto gap = missing_.upper_bound(number);
  if (gap == missing_.begin()) return false;
  --gap;
  const auto [first, end] = *gap;
  if (number >= end) return false;
  if (number == first) {
    missing_.erase(gap);
  } else {
    gap->second = number;
  }
  if (number + 1 < end) missing_.emplace(number + 1, end);
  ForgetOldestGaps();
  return true;
}

void SeenNumbers::ForgetOldestGaps() {
  while (missing_.size() > kRememberGaps) missing_.erase(missing_.begin());
}

namespace {

// Returns null if there is none.
template <typename Map>
auto* ValueOf(Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

Peers::Observed Peers::Add(const WorkerInfo& peer) {
  Observed added;
  if (peer.name == self_.name) return added;
  MutexLock lock(mutex_);
  const Peer* removed = removed_.Find(peer.name);
  if (removed != nullptr && removed->leaving &&
      removed->info.incarnation == peer.incarnation) {
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
  if (auto removed = removed_.Take(peer.name)) {
    place->second = *std::move(removed);
  } else {
    place->second.info = peer;
  }
  NewsLocked(place->second);
  return place->second;
}

void Peers::TakeRankLocked(Peer& peer, bool anyway) {
  Peer*& holder = by_rank_[static_cast<int32_t>(peer.info.rank)];
  if (anyway || holder == nullptr || !holder->there()) holder = &peer;
}

void Peers::GiveRankLocked(const Peer& peer) {
  auto found = by_rank_.find(static_cast<int32_t>(peer.info.rank));
  if (found != by_rank_.end() && found->second == &peer) by_rank_.erase(found);
}

std::optional<WorkerInfo> Peers::ReplaceLocked(Peer& peer,
                                               const WorkerInfo& by) {
  GiveRankLocked(peer);
  const WorkerInfo old = std::exchange(peer.info, by);
  const bool same = SameWorker(old, by);
  if (same) {
    peer.info.incarnation = std::max(old.incarnation, by.incarnation);
  } else {
    Peer next;
    next.info = by;
    next.listed = peer.listed;
    next.past = std::move(peer.past);
    next.past.Add(old.incarnation, {});
    peer = std::move(next);
    NewsLocked(peer);
  }
  TakeRankLocked(peer, false);
  return same ? std::nullopt : std::optional(old);
}

bool Peers::IsPastLocked(const WorkerInfo& worker) const {
  const Peer* peer = ValueOf(peers_, worker.name);
  if (peer == nullptr) peer = removed_.Find(worker.name);
  return peer != nullptr && peer->past.Find(worker.incarnation) != nullptr;
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
  Removed removed{peer.info, peer.state == State::kGone};
  const std::string& name = removed.info.name;
  GiveRankLocked(peer);
  Peer kept = std::move(peer);
  peers_.erase(name);
  // Also if nothing was heard of it: what it has sent may still arrive.
  if (!removed.was_gone) kept.control.Reset();
  // An incarnation that has left does not come back.
  if (kept.leaving) kept.past.Add(removed.info.incarnation, {});
  kept.state = State::kNew;
  kept.listed = false;
  kept.why = why;
  removed_.Add(name, std::move(kept));
  return removed;
}

Peers::Observed Peers::Observe(const WorkerInfo& from, const Said& said) {
  Observed observed;
  MutexLock lock(mutex_);
  Peer* same = ValueOf(peers_, from.name);
  if (same != nullptr && same->state == State::kUp && same->info == from) {
    HearLocked(*same, said, observed);
    return observed;
  }
  observed.stale = IsPastLocked(from);
  if (observed.stale) return observed;
  const bool known = same != nullptr;
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
  HearLocked(peer, said, observed);
  return observed;
}

void Peers::HearLocked(Peer& peer, const Said& said, Observed& observed) {
  NewsLocked(peer);
  const uint64_t epoch = said.epoch.value_or(peer.control.epoch());
  if (epoch < peer.control.epoch()) {
    peer.control.TellEpoch();
    observed.spoken = Spoken::kEarlier;
    return;
  }
  if (epoch > peer.control.epoch()) {
    peer.control.Follow(epoch);
    observed.spoken = Spoken::kLater;
  }
  if (said.request.has_value())
    observed.again = !peer.seen.FirstTime(*said.request);
}

bool Peers::Knows(const WorkerInfo& worker) const {
  MutexLock lock(mutex_);
  const Peer* peer = ValueOf(peers_, worker.name);
  return peer != nullptr && peer->info.incarnation == worker.incarnation;
}

uint64_t Peers::News(const std::string& name) const {
  MutexLock lock(mutex_);
  const Peer* peer = ValueOf(peers_, name);
  return peer == nullptr ? 0 : peer->news;
}

std::optional<WorkerInfo> Peers::ThereSince(const std::string& name,
                                            uint64_t news) const {
  MutexLock lock(mutex_);
  const Peer* peer = ValueOf(peers_, name);
  if (peer == nullptr || peer->news != news || !peer->there()) {
    return std::nullopt;
  }
  return peer->info;
}

bool Peers::FirstTime(const std::string& name, uint64_t call) {
  MutexLock lock(mutex_);
  Peer* peer = ValueOf(peers_, name);
  return peer != nullptr && peer->seen.FirstTime(call);
}

std::optional<Peers::NewCall> Peers::NextCall(const WorkerInfo& to,
                                              std::optional<uint64_t> since) {
  MutexLock lock(mutex_);
  if (to.name == self_.name) return NewCall{0, next_self_call_++};
  Peer* peer = FindLocked(to);
  if (peer == nullptr) return std::nullopt;
  const uint64_t epoch = peer->control.epoch();
  if (since.value_or(epoch) != epoch) return std::nullopt;
  return NewCall{epoch, peer->next_call++};
}

Peers::Peer* Peers::FindLocked(const WorkerInfo& worker) {
  Peer* peer = ValueOf(peers_, worker.name);
  return peer != nullptr && SameWorker(peer->info, worker) ? peer : nullptr;
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
  const Peer* peer = ValueOf(peers_, name);
  return peer == nullptr ? 0 : peer->control.epoch();
}

bool Peers::Push(const WorkerInfo& to, ControlItem item,
                 ControlChannel::Acked acked) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(to);
  if (peer == nullptr) return false;
  if (peer->state == State::kGone) {
    if (item.kind != ControlKind::kAdd) return false;
    peer->state = State::kNew;
    NewsLocked(*peer);
  }
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
  Peer* peer = ValueOf(peers_, name);
  const auto now = Clock::now();
  if (peer == nullptr || !peer->control.Due(now, resend_after)) {
    return std::nullopt;
  }
  ControlFrame frame = peer->control.Take(now, resend_after);
  frame.to = peer->info.incarnation;
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
    if (peer.there()) waiting += peer.control.waiting();
  }
  return waiting;
}

std::vector<PeerInfo> Peers::Infos() const {
  static constexpr const char* kStates[] = {"new", "up", "lost", "gone"};
  std::vector<PeerInfo> infos;
  MutexLock lock(mutex_);
  for (const auto& [name, peer] : peers_) {
    infos.push_back({.worker = peer.info,
                     .state = kStates[static_cast<int>(peer.state)],
                     .control_waiting = peer.control.waiting()});
  }
  std::sort(infos.begin(), infos.end(), [](const auto& a, const auto& b) {
    return a.worker.name < b.worker.name;
  });
  return infos;
}

}  // namespace baton::rpc::internal
