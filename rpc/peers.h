// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "rpc/call_options.h"
#include "rpc/control_channel.h"
#include "rpc/debug_info.h"

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

// The other workers that an agent knows, with their state and the control
// channel to each. A worker that was added is listed until it is struck off or
// removed; a worker that only sent a message is not listed. A worker that is
// given up is forgotten unless it is listed: a listed one may come back and can
// still be called. Lookups by name and rank take constant time. Thread-safe.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Peers(WorkerInfo self) : self_(std::move(self)) {}

  // Whether a message belongs to the current epoch of the two workers. A later
  // epoch means that the sender has given this worker up; it becomes the
  // current one. If the epoch is earlier, the sender will be told the current
  // one.
  enum class Spoken { kNow, kEarlier, kLater };
  struct Observed {
    bool stale = false;   // the incarnation was replaced or has left
    bool joined = false;  // it was not present before
    std::optional<WorkerInfo> replaced = {};
    Spoken spoken = Spoken::kNow;
    bool again = false;  // a request that was seen before
  };
  // Lists `peer` and assigns its rank to it, even if another worker had that
  // rank.
  Observed Add(const WorkerInfo& peer);
  struct Removed {
    WorkerInfo info;
    bool was_gone = false;  // it had been given up before
  };
  // Gives the worker up and forgets it. Only `why` is kept, and what is needed
  // if the same incarnation comes back: call numbers and the next epoch.
  // Returns nothing if the worker is unknown or of another incarnation (0
  // matches any).
  std::optional<Removed> Remove(const WorkerInfo& worker,
                                const absl::Status& why);
  // Unlists the worker, and removes it as Remove does unless it is connected. A
  // connected one is removed when its connection ends.
  std::optional<Removed> StrikeOff(const WorkerInfo& worker,
                                   const absl::Status& why);
  // Returns the worker, of several with one rank the one added last. Returns
  // NotFound with a list of the known workers, or Unavailable if the worker has
  // left or is lost, or if its current incarnation is not the target's.
  absl::StatusOr<WorkerInfo> Find(const Target& target) const;
  // All workers by rank, including self, without those that were given up.
  std::vector<WorkerInfo> All() const;
  bool Knows(const WorkerInfo& worker) const;

  // What a message for this incarnation says: its epoch, and the number of the
  // call that it requests.
  struct Said {
    std::optional<uint64_t> epoch = {};
    std::optional<uint64_t> request = {};
  };
  // Notes that a message came from `from`.
  Observed Observe(const WorkerInfo& from, const Said& said);
  // A counter that grows with each event of `name`: it was added, heard, lost,
  // given up, removed or replaced. 0 for an unknown worker.
  uint64_t News(const std::string& name) const;
  // Returns the worker, unless it is lost or gone or News(name) has changed
  // from `news`.
  std::optional<WorkerInfo> ThereSince(const std::string& name,
                                       uint64_t news) const;
  bool FirstTime(const std::string& name, uint64_t call);
  // The number and the epoch of the next call to `to`, which may be this
  // worker, with epoch 0. Nothing if that incarnation was replaced or removed,
  // or was given up since Epoch returned `since`.
  struct NewCall {
    uint64_t epoch = 0;
    uint64_t number = 0;
  };
  std::optional<NewCall> NextCall(const WorkerInfo& to,
                                  std::optional<uint64_t> since = {});

  // Marks the worker as lost. Returns a number for GiveUp, or 0 if that
  // incarnation is unknown or already gone. `leaving` is set to whether it had
  // announced that it would leave.
  uint64_t MarkLost(const WorkerInfo& peer, bool* leaving);
  // Gives the worker up if it has not been heard since the MarkLost that
  // returned `loss`. Returns true once. The worker is forgotten if it is not
  // listed or had announced that it would leave.
  bool GiveUp(const WorkerInfo& peer, uint64_t loss, const absl::Status& why);
  // The workers that are lost but not given up, with their numbers for GiveUp.
  std::vector<std::pair<WorkerInfo, uint64_t>> Lost() const;
  void MarkLeaving(const WorkerInfo& peer);

  // The epoch of messages to `name` now; 0 for an unknown worker.
  uint64_t Epoch(const std::string& name) const;

  // Returns false if `to` is not the worker's current incarnation, or it was
  // given up; but a handle of what it owns (kAdd) is a reason to try it again,
  // as it may be there unheard.
  bool Push(const WorkerInfo& to, ControlItem item,
            ControlChannel::Acked acked);
  ControlChannel::Received Receive(const WorkerInfo& from,
                                   const ControlFrame& frame);
  // The next control frame that is due for `name`.
  std::optional<ControlFrame> Take(const std::string& name,
                                   std::chrono::milliseconds resend_after);
  std::vector<std::string> WithControlDue(
      std::chrono::milliseconds resend_after) const;
  // The number of items that workers which are present have not acknowledged.
  size_t ControlWaiting() const;
  std::vector<PeerInfo> Infos() const;

 private:
  enum class State { kNew, kUp, kLost, kGone };
  struct Peer {
    WorkerInfo info;
    State state = State::kNew;
    bool there() const { return state == State::kNew || state == State::kUp; }
    bool listed = false;
    bool leaving = false;
    absl::Status why;  // why it was removed
    uint64_t losses = 0;
    uint64_t news = 0;
    NewestMap<uint64_t, std::monostate> past{16};  // earlier incarnations
    ControlChannel control;
    SeenNumbers seen;
    uint64_t next_call = 1;
  };

  void NewsLocked(Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    peer.news = ++last_news_;
  }
  void HearLocked(Peer& peer, const Said& said, Observed& observed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Peer* FindLocked(const WorkerInfo& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Peer* TargetLocked(const Target& target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnknownLocked(const Target& target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Removed RemoveLocked(Peer& peer, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `anyway`: even if another present worker has that rank.
  void TakeRankLocked(Peer& peer, bool anyway)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveRankLocked(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<WorkerInfo> ReplaceLocked(Peer& peer, const WorkerInfo& by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True for an incarnation that was replaced or has left.
  bool IsPastLocked(const WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the entry of that name; restores it if it was removed before, else
  // adds it.
  Peer& EnterLocked(const WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerInfo self_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<int32_t, Peer*> by_rank_ ABSL_GUARDED_BY(mutex_);
  NewestMap<std::string, Peer> removed_ ABSL_GUARDED_BY(mutex_){1024};
  uint64_t next_self_call_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t last_news_ ABSL_GUARDED_BY(mutex_) = 0;  // of all peers
};

}  // namespace baton::rpc::internal
