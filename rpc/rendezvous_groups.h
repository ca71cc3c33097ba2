// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "core/timer.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_messages.h"

namespace baton::rpc {

// The latest changes of a cluster's membership, so that a member with an
// earlier version can be sent the changes instead of the whole list.
// Thread-compatible.
class MembershipLog {
 public:
  enum class Change { kJoined, kLeft, kLost };

  // Adds a change. Versions must grow. Only the latest `most` changes are kept.
  // `why` is the reason of a departure.
  void Add(uint64_t version, Change change, const WorkerInfo& worker,
           size_t most, const std::string& why = "");
  // Returns the last change of each incarnation since `known`, or nothing if
  // `known` is too old or from another log.
  std::optional<MembershipChange> Since(uint64_t known) const;

 private:
  struct Entry {
    uint64_t version;
    Change change;
    WorkerInfo worker;
    std::string why;
  };
  uint64_t oldest_ = 0;  // changes since this version are complete
  std::deque<Entry> entries_;
};

// The clusters of a rendezvous: who waits to join, who has joined and until
// when their leases run. Independent of gRPC.
//
// A member that leaves or is struck off frees its rank and its name. When a
// member leaves, the others may be about to leave as well. Workers that come
// then wait until no member has left for kSettling, or none is left, so that
// they do not join a run that is ending.
//
// Members listen: each asks for changes since the version that it has when it
// renews its lease, and waits here for them. A new member is let in once all
// listening members have asked for changes since a version that includes it,
// that is, once they know of it.
//
// If several workers come with one name within kSettling, none of them is let
// in. A worker that comes later with that name is taken for a restarted one.
//
// A restarted rendezvous takes the members of its earlier run back as they
// come, and so does a cluster of which all members were struck off. Until the
// lease of the last one has passed, the list is incomplete:
// members are told no changes, and new workers wait.
//
// A cluster has no more members at a time than its rendezvous admits. Who comes
// then is refused; workers that the cluster waits for come before those that
// join as one more.
//
// Callbacks run without locks. Thread-safe.
class RendezvousGroups {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Membership>>;
  // Called once for each Enter, within it or later.
  using Done = std::function<void(const Result&)>;
  // Called once for each Renew, within it or later.
  using Heard = std::function<void(const absl::StatusOr<MembershipChange>&)>;
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSettling{500};
  // A new member waits this long at most for the listening members, or half its
  // lease if that is shorter.
  static constexpr std::chrono::milliseconds kHearing{500};

  // `max_members`: of each cluster; 0: any number.
  explicit RendezvousGroups(int max_members = 0) : max_members_(max_members) {}

  void Enter(const JoinOptions& options, Done done);
  // Expire: the timeout of the worker's Join has passed. Cancel: the worker has
  // gone.
  void Expire(const std::string& cluster, const WorkerInfo& self);
  void Cancel(const std::string& cluster, const WorkerInfo& self);
  absl::Status Leave(const std::string& cluster, const std::string& name,
                     uint64_t incarnation,
                     Clock::time_point now = Clock::now());

  // Renews the worker's lease. It is told what has changed since the version
  // `known`: at once if anything has, else when something does, or nothing at
  // `until`. NotFound if the worker is not a member, Unavailable once closed.
  void Renew(const std::string& cluster, const std::string& name,
             uint64_t incarnation, uint64_t known, Clock::time_point until,
             Heard heard, Clock::time_point now = Clock::now());
  // Answers the worker's Renew now.
  void EndListen(const std::string& cluster, const std::string& name,
                 uint64_t incarnation);
  // Makes the worker a member again, with the rank that it had (`wanted_rank`),
  // unless it still is one. `known` is the version of its list. Returns
  // NotFound if another worker has its rank or name or its cluster has ended
  // (nobody is left, and this worker was not struck off), and Unavailable if it
  // joined as one more (kOneMore) and no other member is back yet.
  absl::Status TakeBack(const JoinOptions& seat, uint64_t known,
                        Clock::time_point now = Clock::now());
  // Ends the membership of workers of that name at once, whatever their lease,
  // and tells the other members why. Workers of that name that wait to join are
  // no longer waited for.
  void StrikeOff(const std::string& name, const std::string& why);
  // Returns the members; NotFound if the cluster has not met.
  absl::StatusOr<std::vector<WorkerInfo>> List(
      const std::string& cluster) const;
  // Strikes off members whose lease is over. To be called every `interval`; if
  // this process did not run for a longer time, that time does not count as
  // silence of the members.
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
    bool listens = false;  // its renewals wait, so it hears changes at once
    std::optional<Listener> listener = std::nullopt;
  };
  // A new member whose answer waits for members that have not heard of it yet.
  struct Announced {
    Done done;
    std::shared_ptr<const Membership> joined;
    Clock::time_point until;
    std::set<std::string> unheard;
  };
  struct Group {
    int world_size = 0;  // not counting members that joined as one more
    std::vector<Waiting> waiting;
    // Names that two workers came with, and when.
    std::map<std::string, Clock::time_point> doubled;
    // By name. Empty until the cluster is complete; later some may be gone.
    std::unordered_map<std::string, Member> members;
    std::vector<Announced> announced;
    uint64_t version = 0;
    MembershipLog log;
    // Set if a member left or came back recently: the time at which the members
    // that stay are taken as known.
    std::optional<Clock::time_point> settled_at;
    bool restoring = false;  // the members of an earlier run are coming back

    // True if the member counts toward world_size; others joined as one more.
    bool Counts(const WorkerInfo& member) const;
    int Counted() const;
    bool Empty() const { return waiting.empty() && members.empty(); }
    std::vector<WorkerInfo> List() const;  // by rank
    MembershipChange Since(uint64_t known) const;
  };
  using Members = std::unordered_map<std::string, Member>;
  // Why a worker that waits is refused.
  using Reason = std::function<absl::Status(const Group&, const JoinOptions&)>;

  // Holds the mutex. Gives the answers after it has released the mutex, because
  // they write long lists of members into messages.
  class ABSL_SCOPED_LOCKABLE Turn {
   public:
    explicit Turn(RendezvousGroups& groups)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(groups.mutex_);
    ~Turn() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;

   private:
    RendezvousGroups& groups_;
  };

  // Admission (rendezvous_groups.cc). Returns OK if workers may come to this
  // cluster.
  absl::Status OpenGroup(const std::string& cluster) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Admit(Group& group, const JoinOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitBesideMembers(const Group& group,
                                  const JoinOptions& options) const;
  void AdmitOrRefuse(Group& group, Waiting waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be called when the members that stay are known, in a group that was
  // ending or coming back. Admits the waiting workers anew.
  void Settle(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteIfAllCame(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives ranks to the waiting workers; unless `all`, only to those that join
  // as one more.
  void Complete(Group& group, bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the workers that Complete is to seat to the end of the waiting ones
  // and refuses those for which there is no room. Returns the first one to be
  // seated.
  std::vector<Waiting>::iterator ChooseSeated(Group& group, bool all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull(const Group& group) const {
    return max_members_ > 0 &&
           static_cast<int>(group.members.size()) >= max_members_;
  }
  void Seat(Group& group, const JoinOptions& options, int rank,
            Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Refuses those of that name that wait to join.
  void RefuseNamed(Group& group, const std::string& name, const Reason& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, because the member of that name has just renewed its lease.
  void RefuseClaims(Group& group, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Refuses that very worker, if it waits to join.
  void Refuse(const std::string& cluster, const WorkerInfo& self,
              const Reason& why);
  void AnswerLater(Done done, Result result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Members (rendezvous_members.cc).
  void Changed(Group& group, MembershipLog::Change change,
               const WorkerInfo& worker, const std::string& why = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Members::iterator Erase(Group& group, Members::iterator member,
                          MembershipLog::Change how,
                          const std::string& why = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be called when the group has lost members. Tells the others, and lets
  // waiting workers in if possible.
  void TellOfLosses(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the listening members what has changed.
  void TellListeners(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers the member's Renew, if one waits; without `change`, that nothing
  // has changed.
  void EndListen(Member& member,
                 std::optional<absl::StatusOr<MembershipChange>> change = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets in the announced workers for which `may_enter` returns true.
  void LetInAnnounced(Group& group,
                      const std::function<bool(Announced&)>& may_enter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes that `name` has the version `known` and lets in new members of which
  // all listening members have now heard.
  void HasHeard(Group& group, const std::string& name, uint64_t known)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSeat(const Group& group, const JoinOptions& seat) const;
  // Where no member is left, in this life.
  absl::Status CheckReturnToNobody(const JoinOptions& seat) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns null for one that is not a member.
  Member* FindMember(const std::string& cluster, const std::string& name,
                     uint64_t incarnation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReapGroup(const std::string& cluster, Group& group,
                 Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The first version is the system time in microseconds, so that versions of
  // two runs of a rendezvous differ, also of runs on machines whose clocks do.
  static uint64_t FirstVersion();
  // Returns 0 for a version that another run gave.
  uint64_t OfThisLife(uint64_t version) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_members_;
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  const uint64_t first_version_ = FirstVersion();
  uint64_t versions_ ABSL_GUARDED_BY(mutex_) = first_version_;
  Clock::time_point reaped_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  // The incarnations.
  NewestMap<uint64_t, std::monostate> struck_off_ ABSL_GUARDED_BY(mutex_){
      65'536};
  std::vector<std::function<void()>> answers_ ABSL_GUARDED_BY(mutex_);
};

namespace internal {

// Answers the requests to a rendezvous (rendezvous_server.cc), independently of
// how they arrive. Callers are authenticated already. Also ends expired leases.
// Thread-safe.
class RendezvousHandlers {
 public:
  // Called once the answer is filled in, within Handle or later.
  using Done = std::function<void(const absl::Status&)>;
  // Ends a request that may wait, because the caller has gone. Not to be called
  // once the handlers are destroyed. Null where the answer is there already.
  using Cancel = std::function<void()>;

  explicit RendezvousHandlers(int max_members = 0) : groups_(max_members) {
    ReapLater();
  }
  ~RendezvousHandlers() { timer_.Stop(); }
  RendezvousGroups& groups() { return groups_; }

  // `answer` must live until `done` has run.
  Cancel Handle(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                Done done);
  Cancel Handle(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                Done done);
  Cancel Handle(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                Done done);
  Cancel Handle(const wire::ListRequest& request, wire::ListAnswer* answer,
                Done done);

 private:
  void ReapLater();

  RendezvousGroups groups_;
  Timer timer_{"baton-join"};
};

}  // namespace internal
}  // namespace baton::rpc
