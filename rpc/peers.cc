// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peers.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::rpc::internal {
namespace {

constexpr size_t kRememberGaps = 65'536;
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

// Returns null if there is none.
template <typename Map, typename Key>
PeerPtr ValueOf(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
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

PeerPtr Peers::NewPeer(const WorkerInfo& info) const {
  return std::make_shared<Peer>(
      info, std::make_shared<PeerAccount>(info.name, limits_));
}

// How the worker that a caller names is found.

PeerPtr Peers::Named(const Target& target) const {
  if (Matches(target, self_->info_)) return self_;
  if (const auto* rank = std::get_if<Rank>(&target.key()))
    return ValueOf(by_rank_, static_cast<int32_t>(*rank));
  const auto* name = std::get_if<std::string>(&target.key());
  return ValueOf(peers_, name != nullptr
                             ? *name
                             : std::get<WorkerInfo>(target.key()).name);
}

absl::Status Peers::Unknown(const Target& target) const {
  for (const auto& [name, removed] : removed_) {
    if (!Matches(target, removed->info_)) continue;
    return absl::UnavailableError(absl::StrCat(
        "worker ", name, " is not there any more: ", removed->why_.message()));
  }
  std::vector<std::string> names{self_->name};
  for (const auto& [name, peer] : peers_) names.push_back(name);
  const size_t named = std::min(names.size(), kNamed);
  const auto end = names.begin() + static_cast<long>(named);
  std::partial_sort(names.begin(), end, names.end());
  const size_t more = names.size() - named;
  return absl::NotFoundError(
      absl::StrCat("no worker is called ", target.ToString(),
                   "; there are: ", absl::StrJoin(names.begin(), end, ", "),
                   more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

absl::StatusOr<PeerPtr> Peers::Find(const Target& target) const {
  PeerPtr found = Named(target);
  if (found == nullptr) return Unknown(target);
  const auto* wanted = std::get_if<WorkerInfo>(&target.key());
  if (wanted != nullptr && !SameWorker(*wanted, found->info_)) {
    return absl::UnavailableError(
        absl::StrCat("worker ", found->name,
                     " was started again; what it had before is lost"));
  }
  return found;
}

PeerPtr Peers::Current(const WorkerInfo& worker) const {
  PeerPtr peer = ValueOf(peers_, worker.name);
  return peer != nullptr && SameWorker(peer->info_, worker) ? peer : nullptr;
}

std::vector<WorkerInfo> Peers::All() const {
  std::vector<WorkerInfo> all{self_->info_};
  for (const auto& [name, peer] : peers_) {
    if (peer->state_ != Peer::State::kGone) all.push_back(peer->info_);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.rank, a.name) < std::pair(b.rank, b.name);
  });
  return all;
}

std::vector<PeerPtr> Peers::In(Peer::State state) const {
  std::vector<PeerPtr> in;
  for (const auto& [name, peer] : peers_) {
    if (peer->state_ == state) in.push_back(peer);
  }
  return in;
}

// How workers come and go.

Peers::Observed Peers::Add(const WorkerInfo& worker) {
  Observed added;
  const PeerPtr* removed = removed_.Find(worker.name);
  if (removed != nullptr && (*removed)->leaving_ &&
      (*removed)->info_.incarnation == worker.incarnation) {
    return added;
  }
  const bool known = peers_.contains(worker.name);
  PeerPtr& peer = Enter(worker);
  PeerPtr replaced = Replace(peer, worker);
  if (peer->state_ == Peer::State::kGone) peer->state_ = Peer::State::kNew;
  peer->listed_ = true;
  TakeRank(peer, true);
  HasNews(*peer);
  // A worker that was removed had been given up then, so nothing is replaced
  // now.
  if (known) added.replaced = std::move(replaced);
  added.joined = !known || added.replaced != nullptr;
  added.peer = peer;
  return added;
}

PeerPtr& Peers::Enter(const WorkerInfo& worker) {
  PeerPtr& peer = peers_[worker.name];
  if (peer != nullptr) return peer;
  if (auto removed = removed_.Take(worker.name)) {
    peer = *std::move(removed);
    peer->state_ = Peer::State::kNew;
    stats_.Resume(*peer->account);
  } else {
    peer = NewPeer(worker);
  }
  HasNews(*peer);
  return peer;
}

void Peers::TakeRank(const PeerPtr& peer, bool anyway) {
  PeerPtr& holder = by_rank_[static_cast<int32_t>(peer->info_.rank)];
  if (anyway || holder == nullptr || !holder->there()) holder = peer;
}

void Peers::GiveRank(const Peer& peer) {
  auto found = by_rank_.find(static_cast<int32_t>(peer.info_.rank));
  if (found != by_rank_.end() && found->second.get() == &peer)
    by_rank_.erase(found);
}

PeerPtr Peers::Replace(PeerPtr& place, const WorkerInfo& by) {
  GiveRank(*place);
  PeerPtr replaced = nullptr;
  if (SameWorker(place->info_, by)) {
    const uint64_t incarnation = place->info_.incarnation;
    place->info_ = by;
    place->info_.incarnation = std::max(incarnation, by.incarnation);
  } else {
    replaced = std::exchange(place, std::make_shared<Peer>(by, place->account));
    replaced->state_ = Peer::State::kRemoved;
    place->listed_ = replaced->listed_;
    place->past_ = std::move(replaced->past_);
    place->past_.Add(replaced->info_.incarnation, {});
    HasNews(*place);
  }
  TakeRank(place, false);
  return replaced;
}

bool Peers::IsPast(const WorkerInfo& worker) const {
  PeerPtr peer = ValueOf(peers_, worker.name);
  if (const PeerPtr* removed = removed_.Find(worker.name)) peer = *removed;
  return peer != nullptr && peer->past_.Find(worker.incarnation) != nullptr;
}

std::optional<Peers::Removed> Peers::Remove(const WorkerInfo& worker,
                                            const absl::Status& why) {
  const PeerPtr peer = Current(worker);
  if (peer == nullptr) return std::nullopt;
  return TakeOut(peer, why);
}

std::optional<Peers::Removed> Peers::StrikeOff(const WorkerInfo& worker,
                                               const absl::Status& why) {
  const PeerPtr peer = Current(worker);
  if (peer == nullptr) return std::nullopt;
  peer->listed_ = false;
  if (peer->state_ == Peer::State::kUp) return std::nullopt;
  return TakeOut(peer, why);
}

Peers::Removed Peers::TakeOut(const PeerPtr& peer, const absl::Status& why) {
  Removed removed{peer, peer->info_, peer->state_ == Peer::State::kGone};
  GiveRank(*peer);
  peers_.erase(peer->name);
  // Also if nothing was heard of it: what it has sent may still arrive.
  if (!removed.was_gone) peer->control_.Reset();
  // An incarnation that has left does not come back.
  if (peer->leaving_) peer->past_.Add(removed.info.incarnation, {});
  peer->state_ = Peer::State::kRemoved;
  peer->listed_ = false;
  peer->why_ = why;
  stats_.Forget(*peer->account);
  removed_.Add(peer->name, peer);
  return removed;
}

Peers::Observed Peers::Observe(const WorkerInfo& from, const Said& said) {
  Observed observed;
  observed.peer = ValueOf(peers_, from.name);
  const bool known = observed.peer != nullptr;
  if (known && observed.peer->state_ == Peer::State::kUp &&
      observed.peer->info_ == from) {
    Hear(*observed.peer, said, observed);
    return observed;
  }
  if (IsPast(from)) return {};
  PeerPtr& peer = Enter(from);
  if (!(peer->info_ == from)) {
    PeerPtr replaced = Replace(peer, from);
    if (known) observed.replaced = std::move(replaced);
  }
  if (!known) TakeRank(peer, false);
  const Peer::State before = std::exchange(peer->state_, Peer::State::kUp);
  observed.joined =
      !known || observed.replaced != nullptr || before == Peer::State::kGone;
  if (before == Peer::State::kLost) peer->control_.Resume();
  observed.peer = peer;
  Hear(*peer, said, observed);
  return observed;
}

void Peers::Hear(Peer& peer, const Said& said, Observed& observed) {
  HasNews(peer);
  const uint64_t epoch = said.epoch.value_or(peer.control_.epoch());
  if (epoch < peer.control_.epoch()) {
    peer.control_.TellEpoch();
    observed.spoken = Spoken::kEarlier;
    return;
  }
  if (epoch > peer.control_.epoch()) {
    peer.control_.Follow(epoch);
    observed.spoken = Spoken::kLater;
  }
  if (said.request.has_value())
    observed.again = !peer.seen_.FirstTime(*said.request);
}

Peers::Loss Peers::MarkLost(const WorkerInfo& worker) {
  const PeerPtr peer = Current(worker);
  if (peer == nullptr) return {};
  if (peer->state_ == Peer::State::kGone) return {peer, 0, peer->leaving_};
  peer->state_ = Peer::State::kLost;
  ++peer->losses_;
  HasNews(*peer);
  return LossOf(peer);
}

bool Peers::GiveUp(const Loss& loss, const absl::Status& why) {
  Peer* const peer = loss.peer.get();
  if (peer->state_ != Peer::State::kLost || peer->losses_ != loss.number)
    return false;
  peer->state_ = Peer::State::kGone;
  peer->control_.Reset();
  HasNews(*peer);
  if (peer->leaving_ || !peer->listed_) TakeOut(loss.peer, why);
  return true;
}

// Calls and control messages.

std::optional<Peers::NewCall> Peers::NextCall(Peer& peer,
                                              std::optional<uint64_t> since) {
  if (IsRemoved(peer)) return std::nullopt;
  const uint64_t epoch = peer.control_.epoch();
  if (since.value_or(epoch) != epoch) return std::nullopt;
  return NewCall{epoch, peer.next_call_++};
}

bool Peers::Push(Peer& peer, ControlItem item, ControlChannel::Acked acked) {
  if (IsRemoved(peer)) return false;
  if (peer.state_ == Peer::State::kGone) {
    if (item.kind != ControlKind::kAdd) return false;
    peer.state_ = Peer::State::kNew;
    HasNews(peer);
  }
  peer.control_.Push(item, std::move(acked));
  return true;
}

ControlChannel::Received Peers::Receive(Peer& peer, const ControlFrame& frame) {
  return IsRemoved(peer) ? ControlChannel::Received{}
                         : peer.control_.Receive(frame);
}

std::optional<ControlFrame> Peers::Take(
    Peer& peer, std::chrono::milliseconds resend_after) {
  const auto now = Clock::now();
  if (IsRemoved(peer) || !peer.control_.Due(now, resend_after))
    return std::nullopt;
  ControlFrame frame = peer.control_.Take(now, resend_after);
  frame.to = peer.info_.incarnation;
  return frame;
}

std::vector<PeerPtr> Peers::WithControlDue(
    std::chrono::milliseconds resend_after) const {
  std::vector<PeerPtr> due;
  const auto now = Clock::now();
  for (const auto& [name, peer] : peers_) {
    if (peer->control_.Due(now, resend_after)) due.push_back(peer);
  }
  return due;
}

size_t Peers::ControlWaiting() const {
  size_t waiting = 0;
  for (const auto& [name, peer] : peers_) {
    if (peer->there()) waiting += peer->control_.waiting();
  }
  return waiting;
}

// What is shown of the peers.

std::vector<PeerInfo> Peers::Infos() const {
  static constexpr const char* kStates[] = {"new", "up", "lost", "gone"};
  std::vector<PeerInfo> infos;
  for (const auto& [name, peer] : peers_) {
    infos.push_back({.worker = peer->info_,
                     .state = kStates[static_cast<int>(peer->state_)],
                     .control_waiting = peer->control_.waiting()});
  }
  std::sort(infos.begin(), infos.end(), [](const auto& a, const auto& b) {
    return a.worker.name < b.worker.name;
  });
  return infos;
}

std::vector<MethodStats> Peers::Methods() const {
  std::vector<MethodStats> all;
  stats_.Append(*self_->account, all);
  for (const auto& [name, peer] : peers_) stats_.Append(*peer->account, all);
  stats_.AppendOthers(all);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.incoming, a.peer, a.method) <
           std::tie(b.incoming, b.peer, b.method);
  });
  return all;
}

}  // namespace baton::rpc::internal
