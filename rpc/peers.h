// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/call_options.h"
#include "rpc/control_channel.h"
#include "rpc/debug_info.h"
#include "rpc/seen_numbers.h"

namespace baton::rpc::internal {

// The other workers that an agent knows, whether they are there, and the
// control channel to each. A worker that was added is listed until it is struck
// off or removed; one that was only heard is not. Who is given up is forgotten,
// but for a listed one, which may come back and can be called meanwhile. Names
// and ranks are looked up in constant time. Thread-safe.
class Peers {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Peers(WorkerInfo self) : self_(std::move(self)) {}

  struct Observed {
    bool stale = false;   // of an incarnation that was replaced or has left
    bool joined = false;  // it was not there before
    std::optional<WorkerInfo> replaced;
  };
  // Lists `peer`, and gives its rank to it, whoever had it.
  Observed Add(const WorkerInfo& peer);
  struct Removed {
    WorkerInfo info;
    bool was_gone = false;  // given up before
  };
  // Gives the worker up and forgets it, but for why, and what it needs should
  // the same incarnation come back: call numbers and the next epoch. Nothing if
  // it is not known, or is another incarnation (0: any).
  std::optional<Removed> Remove(const WorkerInfo& worker,
                                const absl::Status& why);
  // As Remove, once its connection has ended: it is listed no longer.
  std::optional<Removed> StrikeOff(const WorkerInfo& worker,
                                   const absl::Status& why);
  // Of several of one rank, the one that was added last. NotFound lists whom
  // there is; Unavailable for one that has left or is lost, and when the
  // target's incarnation is not the present one.
  absl::StatusOr<WorkerInfo> Find(const Target& target) const;
  // Self too, by rank; without those that were given up.
  std::vector<WorkerInfo> All() const;
  bool Knows(const WorkerInfo& worker) const;

  // A message of `bytes` came.
  Observed Observe(const WorkerInfo& from, uint64_t bytes);
  // Grows with all that becomes known of `name`: that it was added, heard,
  // lost, given up, removed, replaced. 0 for an unknown worker.
  uint64_t News(const std::string& name) const;
  // The worker, unless it is lost or gone, or there has been news of it since.
  std::optional<WorkerInfo> ThereSince(const std::string& name,
                                       uint64_t news) const;
  bool FirstTime(const std::string& name, uint64_t call);
  uint64_t NextCall(const std::string& name);
  void CountSent(const std::string& name, uint64_t bytes);

  // A number for GiveUp; 0 when that incarnation is not known or gone already.
  // `leaving` tells whether it had said that it would go.
  uint64_t MarkLost(const WorkerInfo& peer, bool* leaving);
  // True, once, when the peer has not been heard of since that MarkLost. It is
  // forgotten unless it is listed and has not said that it would go.
  bool GiveUp(const WorkerInfo& peer, uint64_t loss, const absl::Status& why);
  // Those that are lost and not given up, with their number for GiveUp.
  std::vector<std::pair<WorkerInfo, uint64_t>> Lost() const;
  void MarkLeaving(const WorkerInfo& peer);

  // Of what is said to `name` now; 0 for an unknown worker.
  uint64_t Epoch(const std::string& name) const;
  // How the epoch of what `from` says compares with the present one. A later
  // one says that it has given this worker up; it is the present one from then
  // on. Of an earlier one `from` will be told that it is over.
  enum class Spoken { kNow, kEarlier, kLater };
  Spoken Compare(const WorkerInfo& from, uint64_t epoch);

  // False when that incarnation is not the present one.
  bool Push(const WorkerInfo& to, ControlItem item,
            ControlChannel::Acked acked);
  ControlChannel::Received Receive(const WorkerInfo& from,
                                   const ControlFrame& frame);
  // The next control frame that is due to `name`.
  std::optional<ControlFrame> Take(const std::string& name,
                                   std::chrono::milliseconds resend_after);
  std::vector<std::string> WithControlDue(
      std::chrono::milliseconds resend_after) const;
  // Items not acknowledged by workers that are there.
  size_t ControlWaiting() const;
  std::vector<PeerInfo> Infos() const;

 private:
  enum class State { kNew, kUp, kLost, kGone };
  struct Peer {
    WorkerInfo info;
    State state = State::kNew;
    bool listed = false;
    bool leaving = false;
    absl::Status why;  // it was removed
    uint64_t losses = 0;
    uint64_t news = 0;
    std::deque<uint64_t> past;  // earlier incarnations, a few
    ControlChannel control;
    SeenNumbers seen;
    uint64_t next_call = 1;
    uint64_t messages_sent = 0;
    uint64_t messages_received = 0;
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
  };

  void NewsLocked(Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    peer.news = ++last_news_;
  }
  void CountReceivedLocked(Peer& peer, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Peer* FindLocked(const WorkerInfo& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Peer* TargetLocked(const Target& target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnknownLocked(const Target& target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Removed RemoveLocked(Peer& peer, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `anyway`: even if another one has it that is there.
  void TakeRankLocked(Peer& peer, bool anyway)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveRankLocked(const Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<WorkerInfo> ReplaceLocked(Peer& peer, const WorkerInfo& by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An incarnation that has been replaced or has left.
  bool IsPastLocked(const WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry of that name, as it was when it was removed.
  Peer& EnterLocked(const WorkerInfo& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerInfo self_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<int32_t, Peer*> by_rank_ ABSL_GUARDED_BY(mutex_);
  // Those that were removed; the oldest are forgotten.
  std::unordered_map<std::string, Peer> removed_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> removed_order_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_self_call_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t last_news_ ABSL_GUARDED_BY(mutex_) = 0;  // of all peers
};

}  // namespace baton::rpc::internal
