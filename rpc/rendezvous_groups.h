// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/rendezvous.h"

namespace baton::rpc {

// Who waits for whom at a rendezvous, without a word of gRPC.
//
// A member that leaves, or is struck off, frees its rank and its name. Where
// one leaves others may be about to: those who come then wait until no more did
// for kSettling, or nobody is left, and so do not join those of a run that is
// ending. Thread-safe.
class RendezvousGroups {
 public:
  using Result = absl::StatusOr<std::vector<WorkerInfo>>;
  // Called once for each Enter: within it or later, under the lock; it must
  // not come back here.
  using Done = std::function<void(const Result&)>;
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSettling{500};

  void Enter(const JoinOptions& options, Done done);
  // The caller's time is up, or it has gone.
  void Expire(const std::string& cluster, const WorkerInfo& self);
  void Cancel(const std::string& cluster, const WorkerInfo& self);
  absl::Status Leave(const std::string& cluster, const std::string& name,
                     uint64_t incarnation,
                     Clock::time_point now = Clock::now());
  // Begins the worker's lease anew. Gives the version of the cluster's list,
  // and the list when `known` is another one. NotFound for one that is no
  // member, Unavailable once closed.
  absl::StatusOr<Membership> Renew(const std::string& cluster,
                                   const std::string& name,
                                   uint64_t incarnation, uint64_t known,
                                   Clock::time_point now = Clock::now());
  // The members; NotFound where none have met.
  Result List(const std::string& cluster) const;
  // Strikes off those whose lease is over. To be called every `interval`: time
  // in which it was not, because this process did not run, is nobody's silence.
  void Reap(Clock::time_point now, std::chrono::milliseconds interval);
  void Close();

 private:
  struct Waiting {
    JoinOptions options;
    Done done;
  };
  struct Member {
    WorkerInfo info;
    std::chrono::milliseconds lease;
    Clock::time_point heard;
  };
  struct Group {
    int world_size = 0;  // of the members
    std::vector<Waiting> waiting;
    std::set<std::string> doubled;  // names that two workers came with
    std::vector<Member> members;    // once complete; fewer when some are gone
    uint64_t version = 0;
    std::optional<Clock::time_point> ending;  // a member left, last then

    // Of the world size; others are one more.
    bool Counts(const Member& member) const;
    int Counted() const;
    const Member* Find(const std::string& name) const;
    std::vector<WorkerInfo> List() const;  // by rank
  };

  absl::Status Admit(Group& group, const JoinOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitBesideMembers(const Group& group,
                                  const JoinOptions& options) const;
  void AdmitOrRefuse(Group& group, Waiting waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a group that was ending: it is known who stays.
  void Settle(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Members are fewer.
  void SeatSuccessors(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteIfAllCame(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives those who wait their ranks, or those alone who are one more.
  void Complete(Group& group, bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseClaims(Group& group, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the wait of that worker, if it waits.
  void Remove(const std::string& cluster, const WorkerInfo& self,
              const std::function<absl::Status(const Group&)>& why);

  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t versions_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point reaped_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
