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
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "core/timer.h"
#include "rpc/rendezvous.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}  // namespace google::protobuf

// How a rendezvous answers requests (rpc/rendezvous.proto), however they
// arrive.
namespace baton::rpc {

using SharedWorker = std::shared_ptr<const wire::Worker>;

// The latest changes of a cluster's membership, so that a member with an
// earlier version can be sent the changes instead of the whole list.
// Thread-compatible.
class MembershipLog {
 public:
  enum class Change { kJoined, kLeft, kLost };

  // Adds a change. Versions must grow. Only the latest `most` changes are kept.
  // `why` is the reason of a departure.
  void Add(uint64_t version, Change change, SharedWorker worker, size_t most,
           const std::string& why = "");
  // Returns the last change of each incarnation since `known`, or nothing if
  // `known` is too old or from another log.
  std::optional<wire::RenewAnswer> Since(uint64_t known) const;

 private:
  struct Entry {
    uint64_t version;
    Change change;
    SharedWorker worker;
    std::string why;
  };
  uint64_t oldest_ = 0;  // changes since this version are complete
  std::deque<Entry> entries_;
};

// The workers of one cluster at its rendezvous: its members, and the workers
// that wait to join. The group is in one of four states:
//
//   gathering   It has no members. Workers wait for each other.
//   met         It has members.
//   ending      A member has left, and the others may be about to. The group
//               settles when none has left for kSettling.
//   returning   The rendezvous was restarted, or all members had been struck
//               off, and members come back. Until the group settles, when the
//               lease of the last one that came back has passed, its list is
//               incomplete.
//
//                gathering       met                ending      returning
//
// a worker       waits; once     waits; once all    waits       waits
// enters         world_size      free places are
//                are here, all   asked for, gets
//                join: met       one of them; is
//                                refused if none is
// ... as one     waits           joins              waits       waits
// more
// ... under a    -               waits, if the      waits       waits
// member's name                  member has a
//                                lease (a claim)
// a member       -               is told changes;   is told     is told
// renews                         claims to its      changes     nothing
//                                name are refused
// it leaves      -               ending             ending      returning
// it is silent   -               frees its place    frees its   frees its
// or struck off                                     place       place
// a former       returning,      joins if its rank  as met      as met
// member renews  unless the      and name are free
//                cluster ended
// the group      -               -                  met         met; members
// settles                                                       are told all
//
// When a group settles, or has lost its last member, the workers that wait
// enter anew. If several workers come with one name within kSettling, all of
// them are refused; one that comes later with that name is taken for a
// restarted worker.
//
// A new member is let in once each member that listens has asked for changes
// since a version that includes it, that is, once they know of it, or after
// kHearing.
//
// Thread-compatible.
class RendezvousGroup {
 public:
  using Clock = std::chrono::steady_clock;
  // Is called once, after the answer has been filled in.
  using Done = std::function<void(const absl::Status&)>;
  static constexpr std::chrono::milliseconds kSettling{500};
  // A new member waits this long at most for the listening members, or half its
  // lease if that is shorter.
  static constexpr std::chrono::milliseconds kHearing{500};

  // How the limit of members is set.
  static constexpr char kLimit[] =
      "(baton-run --max_workers, baton-rendezvous --max_members)";

  // What all groups of a rendezvous share.
  struct Shared {
    const size_t max_members;  // of each group; 0: any number
    uint64_t version;          // of the last change
    // The incarnations whose lease has ended.
    NewestMap<uint64_t, std::monostate> struck_off{65'536};
    // To be called without locks, since they write long lists of members.
    std::vector<std::function<void()>> answers = {};
    void AnswerLater(Done done, const absl::Status& status) {
      answers.push_back([done = std::move(done), status] { done(status); });
    }
  };

  RendezvousGroup(std::string cluster, Shared& shared)
      : cluster_(std::move(cluster)), shared_(shared) {}

  bool empty() const { return waiting_.empty() && members_.empty(); }
  size_t size() const { return members_.size(); }
  bool Has(const std::string& name, uint64_t incarnation) const;
  // Adds the members, by rank.
  void List(google::protobuf::RepeatedPtrField<wire::Worker>* members) const;
  // Returns a phrase about who waits in a gathering group, and for whom.
  std::string WhoWaits() const;

  void Enter(std::shared_ptr<const wire::JoinRequest> request,
             wire::JoinAnswer* answer, Done done, Clock::time_point now);
  // Ends the worker's wait: its request to join is refused, and its renewal is
  // answered that nothing has changed.
  void EndWait(const std::string& name, uint64_t incarnation);
  // Renews a member's lease. The member is told what has changed since the
  // version `known`: at once if anything has, else when something changes. At
  // `until` it is told that nothing has.
  void Renew(const std::string& name, uint64_t known, Clock::time_point until,
             wire::RenewAnswer* answer, Done done, Clock::time_point now);
  // Makes a former member a member again, with the rank that it had. Returns
  // NotFound if another worker has its rank or name or the cluster has ended
  // (no member is left, and this one was not struck off), and Unavailable if it
  // joined as one more and no other member is back yet.
  absl::Status TakeBack(const wire::JoinRequest& seat, uint64_t known,
                        Clock::time_point now);
  void Leave(const std::string& name, Clock::time_point now);
  void StrikeOff(const std::string& name, const std::string& why,
                 Clock::time_point now);
  // Ends what has lasted its time. `stopped` is a time in which the rendezvous
  // did not run, which does not count as silence of the members.
  void Reap(Clock::time_point now, Clock::duration stopped);
  void Close(const absl::Status& why);

 private:
  struct Waiting {
    std::shared_ptr<const wire::JoinRequest> request;
    wire::JoinAnswer* answer;
    Done done;
    Clock::time_point until;
  };
  struct Member {
    SharedWorker info;
    std::chrono::milliseconds lease;
    Clock::time_point heard;
    bool listens = false;  // its renewals wait, so it hears changes at once
    uint64_t known = 0;    // the version of its list
    // The renewal that waits, if `done` is not null.
    wire::RenewAnswer* answer = nullptr;
    Done done = nullptr;
    Clock::time_point until = {};
  };
  // A new member whose answer waits for members that may not know of it yet.
  struct Announced {
    wire::JoinAnswer* answer;
    Done done;
    std::shared_ptr<const wire::JoinAnswer> joined;
    Clock::time_point until;
  };
  using Members = std::unordered_map<std::string, Member>;

  // Admission (rendezvous_groups.cc). Admit returns OK if the worker may wait.
  static bool IsOneMore(const wire::JoinRequest& request);
  absl::Status Admit(const wire::JoinRequest& request, Clock::time_point now);
  absl::Status AdmitBesideMembers(const wire::JoinRequest& request) const;
  void AdmitOrRefuse(Waiting waiting, Clock::time_point now);
  absl::Status TooLateOrTwice(const std::string& name) const;
  absl::Status SomeAreMissing(const wire::JoinRequest& request) const;
  // "1 of 2 workers came within 5 s (alice); missing: bob"
  std::string WhoCame(const wire::JoinRequest& request,
                      const std::string& within) const;

  // Seats and members (rendezvous_members.cc).
  void Settle(Clock::time_point now);
  // Seats the waiting workers if the cluster is then complete, counting its
  // present members, unless it is ending or returning.
  void SeatIfAllCame(Clock::time_point now);
  // Gives ranks to the waiting workers; unless `all`, only to those that join
  // as one more.
  void Seat(bool all, Clock::time_point now);
  // Removes the waiting workers that are to be seated, in their order. Refuses
  // those for which there is no room.
  std::vector<Waiting> TakeSeated(bool all);
  void AddMember(const wire::JoinRequest& request, int rank, uint64_t known,
                 Clock::time_point now);
  void LetInAnnounced(Clock::time_point now);
  // Refuses each waiting worker for which `why` returns an error. Both return
  // whether there was one.
  bool Refuse(const std::function<absl::Status(const Waiting&)>& why);
  bool RefuseNamed(const std::string& name, const absl::Status& why);
  // Refuses whoever waits under the name of this member, which has been heard.
  void RefuseClaims(const std::string& name) {
    if (!settles_) RefuseNamed(name, TooLateOrTwice(name));
  }
  void Changed(MembershipLog::Change change, const SharedWorker& worker,
               const std::string& why = "");
  Members::iterator Erase(Members::iterator member, MembershipLog::Change how,
                          const std::string& why = "");
  wire::RenewAnswer Since(uint64_t known) const;
  void TellListeners();
  // To be called when the group has lost members. Tells the others, and lets
  // waiting workers in if possible.
  void TellOfLosses(Clock::time_point now);
  void EndRenewal(Member& member,
                  const absl::Status& status = absl::OkStatus());
  absl::Status CheckReturnToNobody(const wire::JoinRequest& seat) const;
  bool IsFree(const wire::JoinRequest& seat) const;
  int Counted() const;  // the members that world_size_ counts
  bool HasRoomFor(size_t more) const {
    return shared_.max_members == 0 || size() + more <= shared_.max_members;
  }

  const std::string cluster_;
  Shared& shared_;
  int world_size_ = 0;  // not counting members that joined as one more
  std::vector<Waiting> waiting_;
  std::map<std::string, Clock::time_point> doubled_;  // names, and since when
  Members members_;                                   // by name
  std::vector<Announced> announced_;
  uint64_t version_ = 0;
  MembershipLog log_;
  // When the group settles, if it is ending or returning.
  std::optional<Clock::time_point> settles_;
  bool returning_ = false;
};

// The groups of a rendezvous, by cluster. Callers are authenticated already,
// but their requests are not trusted. Thread-safe.
class RendezvousGroups {
 public:
  using Clock = RendezvousGroup::Clock;
  using Done = RendezvousGroup::Done;
  // Ends a request that may wait, because the caller has gone. Must not be
  // called once the groups are destroyed.
  using Cancel = std::function<void()>;

  // A cluster has at most `max_members` members at a time; 0 means any number.
  // Further workers are refused; those that the cluster waits for are let in
  // before those that join as one more.
  explicit RendezvousGroups(int max_members = 0);
  ~RendezvousGroups();

  // Handles a request as rpc/rendezvous.proto says. `done` is called without
  // locks, now or later, and `answer` must live until then.
  Cancel Handle(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                Done done, Clock::time_point now = Clock::now());
  Cancel Handle(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                Done done, Clock::time_point now = Clock::now());
  Cancel Handle(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                Done done, Clock::time_point now = Clock::now());
  Cancel Handle(const wire::ListRequest& request, wire::ListAnswer* answer,
                Done done, Clock::time_point now = Clock::now());
  // Ends the membership of workers of that name at once, whatever their lease,
  // and tells the other members why. Workers of that name that wait to join are
  // no longer waited for.
  void StrikeOff(const std::string& name, const std::string& why);
  // Ends the calls that wait and refuses new ones.
  void Close();

  // Ends what has lasted its time: leases, and requests that wait. Must be
  // called every `interval`; if this process did not run for a longer time,
  // that time does not count as silence of the members.
  void Reap(Clock::time_point now, std::chrono::milliseconds interval);
  // Starts a thread that calls Reap, and that ends the wait of renewals on
  // time.
  void KeepReaping();

 private:
  // Holds the mutex. Then removes the group if it is empty, and gives the
  // answers.
  class Turn;
  using Group = RendezvousGroup;

  // Makes the group if there is none. Fails if this rendezvous has closed or
  // serves too many clusters.
  absl::StatusOr<Group*> Open(const std::string& cluster)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns null unless the worker is a member.
  Group* GroupOf(const std::string& cluster, const std::string& name,
                 uint64_t incarnation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the group of which the worker is a member, perhaps again.
  absl::StatusOr<Group*> Return(const wire::RenewRequest& request,
                                uint64_t known, Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status List(const std::string& cluster, wire::ListAnswer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Cancel EndWaitOf(const std::string& cluster, const std::string& name,
                   uint64_t incarnation);
  void ReapLater();

  // Versions begin with the system time in microseconds, so that those of two
  // runs of a rendezvous differ, also of runs on machines whose clocks do.
  const uint64_t first_version_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point reaped_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  Group::Shared shared_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Timer> timer_;  // null unless it keeps reaping
};

}  // namespace baton::rpc
