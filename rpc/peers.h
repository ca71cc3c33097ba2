// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/newest_map.h"
#include "rpc/call_options.h"
#include "rpc/control_channel.h"
#include "rpc/debug_info.h"
#include "rpc/peer_account.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {

// Records which of a peer's request numbers have been seen, so that each
// request is served at most once. Remembers a bounded number of gaps; the
// numbers of older gaps count as seen. 0 and the largest number always count as
// seen. Thread-compatible.
class SeenNumbers {
 public:
  bool FirstTime(uint64_t number);

 private:
  void ForgetOldestGaps();

  uint64_t next_ = 1;  // no number from here on was seen
  // Nor were these, from key to value - 1.
  std::map<uint64_t, uint64_t> missing_;
};

class OutgoingCall;
struct IncomingCall;

// One incarnation of another worker, or this worker itself: all that an agent
// knows of it. Whoever has found it in Peers passes the pointer on, which means
// the same incarnation for ever, even after that was removed. Its state is read
// and changed through Peers and under the lock that guards these.
class Peer {
 public:
  // What the state becomes, where it changes:
  //                         | kNew  | kUp   | kLost     | kGone | kRemoved
  // it is heard             | kUp   |       | kUp       | kUp   | kUp (1)
  // its connection breaks   | kLost | kLost |           |       |
  // it is given up          |       |       | kGone (2) |       |
  // it is added             |       |       |           | kNew  | kNew (1)
  // a handle of it comes    |       |       |           | kNew  |
  // it is removed, replaced | kRemoved in every state
  // (1) Unless it was replaced or has left: what it says is stale for ever.
  // (2) kRemoved if it is not listed or had announced that it would leave.
  // Calls to it may begin in every state but kRemoved.
  enum class State { kNew, kUp, kLost, kGone, kRemoved };

  Peer(WorkerInfo info, std::shared_ptr<PeerAccount> of)
      : name(info.name), account(std::move(of)), info_(std::move(info)) {}

  const std::string name;
  const std::shared_ptr<PeerAccount> account;

 private:
  friend class Peers;

  bool there() const { return state_ == State::kNew || state_ == State::kUp; }

  WorkerInfo info_;
  State state_ = State::kNew;
  bool listed_ = false;
  bool leaving_ = false;
  absl::Status why_;  // why it was removed
  uint64_t losses_ = 0;
  uint64_t news_ = 0;
  NewestMap<uint64_t, std::monostate> past_{16};  // earlier incarnations
  ControlChannel control_;
  SeenNumbers seen_;
  uint64_t next_call_ = 1;
  // By number. The agent owns the calls.
  std::map<uint64_t, std::weak_ptr<OutgoingCall>> sent_;
  std::map<uint64_t, std::weak_ptr<IncomingCall>> served_;
};
using PeerPtr = std::shared_ptr<Peer>;

// The workers that an agent knows, itself included. A worker that was added is
// listed until it is struck off or removed; a worker that only sent a message
// is not listed. A worker that is given up is removed unless it is listed: a
// listed one may come back and can still be called. Of the last workers that
// were removed, it remembers why, and what is needed if the same incarnation
// comes back: call numbers and the next epoch. Lookups by name and rank take
// constant time. Thread-compatible: an agent guards its peers and its calls
// with one lock, because whether a call may begin depends on its peer, and the
// end of a peer ends its calls.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Peers(const WorkerInfo& self, const PeerAccount::Limits& limits = {})
      : limits_(limits), self_(NewPeer(self)) {}

  // Whether a message belongs to the current epoch of the two workers. A later
  // epoch means that the sender has given this worker up; it becomes the
  // current one. If the epoch is earlier, the sender will be told the current
  // one.
  enum class Spoken { kNow, kEarlier, kLater };
  struct Observed {
    PeerPtr peer = nullptr;  // null: the incarnation was replaced or has left
    bool joined = false;     // it was not present before
    PeerPtr replaced = nullptr;
    Spoken spoken = Spoken::kNow;
    bool again = false;  // a request that was seen before

    bool stale() const { return peer == nullptr; }
  };
  // Lists `worker`, which is not this one, and assigns its rank to it, even if
  // another worker had that rank.
  Observed Add(const WorkerInfo& worker);
  struct Removed {
    PeerPtr peer;
    WorkerInfo info;
    bool was_gone = false;  // it had been given up before
  };
  // Gives the worker up and forgets it. Returns nothing if the worker is
  // unknown or of another incarnation (0 matches any).
  std::optional<Removed> Remove(const WorkerInfo& worker,
                                const absl::Status& why);
  // Unlists the worker, and removes it as Remove does unless it is connected. A
  // connected one is removed when its connection ends.
  std::optional<Removed> StrikeOff(const WorkerInfo& worker,
                                   const absl::Status& why);
  // Returns the worker, of several with one rank the one added last. Returns
  // NotFound with a list of the known workers, or Unavailable if the worker has
  // left or is lost, or if its current incarnation is not the target's.
  absl::StatusOr<PeerPtr> Find(const Target& target) const;
  // Returns null if the worker is unknown or of another incarnation (0 matches
  // any).
  PeerPtr Current(const WorkerInfo& worker) const;
  // All workers by rank, including self, without those that were given up.
  std::vector<WorkerInfo> All() const;

  // What a message for this incarnation says: its epoch, and the number of the
  // call that it requests.
  struct Said {
    std::optional<uint64_t> epoch = {};
    std::optional<uint64_t> request = {};
  };
  // Notes that a message came from `from`.
  Observed Observe(const WorkerInfo& from, const Said& said);

  const WorkerInfo& InfoOf(const Peer& peer) const { return peer.info_; }
  bool IsRemoved(const Peer& peer) const {
    return peer.state_ == Peer::State::kRemoved;
  }
  // The other workers in that state, of those that are not removed.
  std::vector<PeerPtr> In(Peer::State state) const;
  // A counter that grows with each event of the peer: it was added, heard,
  // lost, given up, removed or replaced.
  uint64_t News(const Peer& peer) const { return peer.news_; }
  // Whether the peer is neither lost nor gone and News has not changed since.
  bool IsThereSince(const Peer& peer, uint64_t news) const {
    return peer.there() && peer.news_ == news;
  }
  // Notes the number of a call of the peer. False if it was noted before.
  bool FirstTime(Peer& peer, uint64_t call) {
    return peer.seen_.FirstTime(call);
  }
  // The epoch of messages to the peer now; 0 once it is removed.
  uint64_t Epoch(const Peer& peer) const {
    return IsRemoved(peer) ? 0 : peer.control_.epoch();
  }
  // The number and the epoch of the next call to the peer. Nothing if it is
  // removed, or was given up since Epoch returned `since`.
  struct NewCall {
    uint64_t epoch = 0;
    uint64_t number = 0;
  };
  std::optional<NewCall> NextCall(Peer& peer,
                                  std::optional<uint64_t> since = {});
  // The calls under way to and from the peer, by number.
  auto& Sent(Peer& peer) { return peer.sent_; }
  auto& Served(Peer& peer) { return peer.served_; }

  struct Loss {
    PeerPtr peer = nullptr;  // null if that incarnation is unknown
    uint64_t number = 0;     // for GiveUp; 0 if the peer was gone already
    bool leaving = false;    // it had announced that it would leave
  };
  // Marks the worker as lost.
  Loss MarkLost(const WorkerInfo& worker);
  // The last loss of the peer.
  Loss LossOf(const PeerPtr& peer) const {
    return {peer, peer->losses_, peer->leaving_};
  }
  // Gives the peer up if it has not been heard since that loss. Returns true
  // once. The peer is removed if it is not listed or had announced that it
  // would leave.
  bool GiveUp(const Loss& loss, const absl::Status& why);
  void MarkLeaving(Peer& peer) { peer.leaving_ = true; }

  // Returns false if the peer was given up or removed; but a handle of what it
  // owns (kAdd) is a reason to try one again that was only given up, as it may
  // be there unheard.
  bool Push(Peer& peer, ControlItem item, ControlChannel::Acked acked);
  // Returns nothing if the peer is removed.
  ControlChannel::Received Receive(Peer& peer, const ControlFrame& frame);
  // The next control frame that is due for the peer.
  std::optional<ControlFrame> Take(Peer& peer,
                                   std::chrono::milliseconds resend_after);
  std::vector<PeerPtr> WithControlDue(
      std::chrono::milliseconds resend_after) const;
  // The number of items that workers which are present have not acknowledged.
  size_t ControlWaiting() const;
  std::vector<PeerInfo> Infos() const;

  void Count(const Peer& peer, const EndedCall& ended) {
    stats_.Add(*peer.account, ended);
  }
  std::vector<MethodStats> Methods() const;  // by side, peer and method

 private:
  PeerPtr NewPeer(const WorkerInfo& info) const;
  void HasNews(Peer& peer) { peer.news_ = ++last_news_; }
  void Hear(Peer& peer, const Said& said, Observed& observed);
  PeerPtr Named(const Target& target) const;
  absl::Status Unknown(const Target& target) const;
  Removed TakeOut(const PeerPtr& peer, const absl::Status& why);
  // `anyway`: even if another present worker has that rank.
  void TakeRank(const PeerPtr& peer, bool anyway);
  void GiveRank(const Peer& peer);
  // Returns the peer that was in `place` if `by` is another incarnation.
  PeerPtr Replace(PeerPtr& place, const WorkerInfo& by);
  // True for an incarnation that was replaced or has left.
  bool IsPast(const WorkerInfo& worker) const;
  // Returns the place of the peer of that name; restores the peer if it was
  // removed before, else adds one.
  PeerPtr& Enter(const WorkerInfo& worker);

  const PeerAccount::Limits limits_;
  const PeerPtr self_;  // calls itself as it calls the others
  std::unordered_map<std::string, PeerPtr> peers_;
  std::unordered_map<int32_t, PeerPtr> by_rank_;
  NewestMap<std::string, PeerPtr> removed_{1024};
  uint64_t last_news_ = 0;  // of all peers
  CallStats stats_;
};

}  // namespace baton::rpc::internal
