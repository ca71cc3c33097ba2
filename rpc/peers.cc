// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

constexpr size_t kRememberGaps = 65'536;
constexpr size_t kRememberIncarnations = 16;
constexpr size_t kRememberRemoved = 4096;

bool Matches(const Target& target, const WorkerInfo& worker) {
  if (const auto* name = std::get_if<std::string>(&target.key())) {
    return *name == worker.name;
  }
  if (const auto* rank = std::get_if<Rank>(&target.key())) {
    return *rank == worker.rank;
  }
  return std::get<WorkerInfo>(target.key()).name == worker.name;
}

bool SameIncarnation(uint64_t a, uint64_t b) {
  return a == b || a == 0 || b == 0;
}

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

std::optional<WorkerInfo> Peers::Add(const WorkerInfo& peer) {
  if (peer.name == self_.name) return std::nullopt;
  MutexLock lock(mutex_);
  const bool known = peers_.contains(peer.name);
  Peer& entry = EnterLocked(peer);
  auto replaced = ReplaceLocked(entry, peer);
  NewsLocked(entry);
  // One that was removed is gone already.
  return known ? replaced : std::nullopt;
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

std::optional<WorkerInfo> Peers::ReplaceLocked(Peer& peer,
                                               const WorkerInfo& by) {
  if (SameIncarnation(peer.info.incarnation, by.incarnation)) {
    const uint64_t incarnation =
        std::max(peer.info.incarnation, by.incarnation);
    peer.info = by;
    peer.info.incarnation = incarnation;
    return std::nullopt;
  }
  const WorkerInfo old = peer.info;
  std::deque<uint64_t> past = std::move(peer.past);
  past.push_back(old.incarnation);
  if (past.size() > kRememberIncarnations) past.pop_front();
  peer = Peer{};
  peer.info = by;
  peer.past = std::move(past);
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

std::optional<WorkerInfo> Peers::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  auto found = peers_.find(name);
  if (found == peers_.end()) return std::nullopt;
  Peer peer = std::move(found->second);
  peers_.erase(found);
  const WorkerInfo info = peer.info;
  peer.state = State::kNew;
  peer.leaving = false;
  peer.control.Reset();
  removed_[name] = std::move(peer);
  removed_order_.push_back(name);
  if (removed_order_.size() > kRememberRemoved) {
    removed_.erase(removed_order_.front());
    removed_order_.pop_front();
  }
  return info;
}

absl::StatusOr<WorkerInfo> Peers::Find(const Target& target) const {
  WorkerInfo found = self_;
  if (!Matches(target, self_)) {
    MutexLock lock(mutex_);
    auto it = std::find_if(peers_.begin(), peers_.end(), [&](const auto& p) {
      return Matches(target, p.second.info);
    });
    if (it == peers_.end()) {
      std::vector<std::string> names{self_.name};
      for (const auto& [name, peer] : peers_) names.push_back(name);
      std::sort(names.begin(), names.end());
      return absl::NotFoundError(
          absl::StrCat("no worker is called ", target.ToString(),
                       "; there are: ", absl::StrJoin(names, ", ")));
    }
    found = it->second.info;
  }
  const auto* wanted = std::get_if<WorkerInfo>(&target.key());
  if (wanted != nullptr &&
      !SameIncarnation(wanted->incarnation, found.incarnation)) {
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
    for (const auto& [name, peer] : peers_) all.push_back(peer.info);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.rank, a.name) < std::pair(b.rank, b.name);
  });
  return all;
}

Peers::Observed Peers::Observe(const WorkerInfo& from, uint64_t bytes) {
  Observed observed;
  MutexLock lock(mutex_);
  observed.stale = IsPastLocked(from);
  if (observed.stale) return observed;
  const bool known = peers_.contains(from.name);
  Peer& peer = EnterLocked(from);
  if (!(peer.info == from)) {
    auto replaced = ReplaceLocked(peer, from);
    if (known) observed.replaced = std::move(replaced);
  }
  if (peer.state == State::kLost) peer.control.Resume();
  peer.state = State::kUp;
  NewsLocked(peer);
  ++peer.messages_received;
  peer.bytes_received += bytes;
  return observed;
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
  if (found == peers_.end() ||
      !SameIncarnation(found->second.info.incarnation, worker.incarnation)) {
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

bool Peers::GiveUp(const WorkerInfo& worker, uint64_t loss) {
  MutexLock lock(mutex_);
  Peer* peer = FindLocked(worker);
  if (peer == nullptr || peer->state != State::kLost || peer->losses != loss) {
    return false;
  }
  peer->state = State::kGone;
  NewsLocked(*peer);
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

void Peers::ResetControl(const WorkerInfo& worker) {
  MutexLock lock(mutex_);
  if (Peer* peer = FindLocked(worker)) peer->control.Reset();
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
  return infos;
}

}  // namespace internal
}  // namespace baton::rpc
