// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/membership_log.h"
#include "rpc/rendezvous.h"

namespace baton::rpc {

// Who waits for whom at a rendezvous, without a word of gRPC.
//
// A member that leaves, or is struck off, frees its rank and its name. Where
// one leaves others may be about to: those who come then wait until no more did
// for kSettling, or nobody is left, and so do not join those of a run that is
// ending.
//
// Of several that come with one name within kSettling nobody is let in. Who
// comes later is the one that was started again.
//
// Members ask for what has changed, each beyond the version that it has, and
// wait here for it. Who joins them is let in once those that so listen have
// asked beyond its version, that is, know of it.
//
// The members of an earlier life of the rendezvous are taken back as they come,
// and so are those of a cluster of which all were struck off. Until the lease
// of the last one is over they are told nothing, as the list is not whole, and
// those who come wait.
//
// All answers are given without locks. Thread-safe.
class RendezvousGroups {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Membership>>;
  // Called once for each Enter, within it or later.
  using Done = std::function<void(const Result&)>;
  // Called once for each Listen, within it or later.
  using Heard = std::function<void(const absl::StatusOr<MembershipChange>&)>;
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSettling{500};
  // Who is let in waits for those that listen for so long at most, or half its
  // lease.
  static constexpr std::chrono::milliseconds kHearing{500};

  void Enter(const JoinOptions& options, Done done);
  // The caller's time is up, or it has gone.
  void Expire(const std::string& cluster, const WorkerInfo& self);
  void Cancel(const std::string& cluster, const WorkerInfo& self);
  absl::Status Leave(const std::string& cluster, const std::string& name,
                     uint64_t incarnation,
                     Clock::time_point now = Clock::now());

  // Begins the worker's lease anew. Gives what has changed since the version
  // `known`. NotFound for one that is no member, Unavailable once closed.
  absl::StatusOr<MembershipChange> Renew(const std::string& cluster,
                                         const std::string& name,
                                         uint64_t incarnation, uint64_t known,
                                         Clock::time_point now = Clock::now());
  // The same, but while nothing has the answer waits, until `until` at most.
  void Listen(const std::string& cluster, const std::string& name,
              uint64_t incarnation, uint64_t known, Clock::time_point until,
              Heard heard, Clock::time_point now = Clock::now());
  // Answers it now.
  void EndListen(const std::string& cluster, const std::string& name,
                 uint64_t incarnation);
  // Sees to it that the worker is a member, under the rank that it had
  // (`wanted_rank`). `known`: the version of its list. NotFound when another
  // one has its rank or name, or its cluster has ended; Unavailable for one
  // more, before others are back. A cluster has ended when nobody is left and
  // this worker was not struck off.
  absl::Status TakeBack(const JoinOptions& seat, uint64_t known,
                        Clock::time_point now = Clock::now());
  // Members of that name are lost at once, whatever their lease, and others
  // hear why; those that wait to be let in are not waited for.
  void StrikeOff(const std::string& name, const std::string& why);
  // The members; NotFound where none have met.
  absl::StatusOr<std::vector<WorkerInfo>> List(
      const std::string& cluster) const;
  // Strikes off those whose lease is over. To be called every `interval`: time
  // in which it was not, because this process did not run, is nobody's silence.
  void Reap(Clock::time_point now, std::chrono::milliseconds interval);
  void Close();

 private:
  struct Waiting {
    JoinOptions options;
    Done done;
  };
  struct Listener {
    uint64_t known = 0;
    Clock::time_point until;
    Heard heard;
  };
  struct Member {
    WorkerInfo info;
    std::chrono::milliseconds lease;
    Clock::time_point heard;
    bool listens = false;  // and hears at once what changes
    std::optional<Listener> listener = std::nullopt;
  };
  // One that is let in, and those who have not heard of it yet.
  struct Announced {
    Done done;
    std::shared_ptr<const Membership> joined;
    Clock::time_point until;
    std::set<std::string> unheard;
  };
  struct Group {
    int world_size = 0;  // of the members
    std::vector<Waiting> waiting;
    // Names that two workers came with, and when.
    std::map<std::string, Clock::time_point> doubled;
    // By name, once complete; fewer when some are gone.
    std::unordered_map<std::string, Member> members;
    std::vector<Announced> announced;
    uint64_t version = 0;
    MembershipLog log;
    // A member left, or came back, not long ago: when it is known who stays.
    std::optional<Clock::time_point> settled_at;
    bool restoring = false;  // the members of an earlier life

    // Of the world size; others are one more.
    bool Counts(const WorkerInfo& member) const;
    int Counted() const;
    bool Empty() const { return waiting.empty() && members.empty(); }
    std::vector<WorkerInfo> List() const;  // by rank
    MembershipChange Since(uint64_t known) const;
  };
  using Members = std::unordered_map<std::string, Member>;

  // Admission (rendezvous_groups.cc). Whether one may come to this cluster.
  absl::Status OpenGroup(const std::string& cluster) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Admit(Group& group, const JoinOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitBesideMembers(const Group& group,
                                  const JoinOptions& options) const;
  void AdmitOrRefuse(Group& group, Waiting waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a group that was ending or coming back: it is known who stays.
  void Settle(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Members are fewer.
  void SeatSuccessors(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteIfAllCame(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives those who wait their ranks, or those alone who are one more.
  void Complete(Group& group, bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Seat(Group& group, const JoinOptions& options, int rank,
            Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseClaims(Group& group, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the wait of that worker, if it waits.
  void Remove(const std::string& cluster, const WorkerInfo& self,
              const std::function<absl::Status(const Group&)>& why);

  // Members (rendezvous_members.cc).
  void Changed(Group& group, MembershipLog::Change change,
               const WorkerInfo& worker, const std::string& why = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Members::iterator Erase(Group& group, Members::iterator member,
                          MembershipLog::Change how,
                          const std::string& why = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells those who listen what has changed.
  void TellListeners(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndListen(Member& member, absl::StatusOr<MembershipChange> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets those in whom `name`, which has that version, was the last to hear of.
  void HasHeard(Group& group, const std::string& name, uint64_t known)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSeat(const Group& group, const JoinOptions& seat) const;
  // Where no member is left, in this life.
  absl::Status CheckReturnToNobody(const JoinOptions& seat) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<MembershipChange> RenewLocked(const std::string& cluster,
                                               const std::string& name,
                                               uint64_t incarnation,
                                               uint64_t known,
                                               Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Member* FindMember(const std::string& cluster, const std::string& name,
                     uint64_t incarnation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReapGroup(const std::string& cluster, Group& group,
                 Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AnswerLater(Done done, Result result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveAnswers() ABSL_LOCKS_EXCLUDED(mutex_);

  // Versions of two lives of a rendezvous differ, as far as clocks go on.
  static uint64_t FirstVersion();

  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  const uint64_t first_version_ = FirstVersion();
  uint64_t versions_ ABSL_GUARDED_BY(mutex_) = first_version_;
  Clock::time_point reaped_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  // The incarnations, the last ones.
  std::deque<uint64_t> struck_off_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
