// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/collectives/shared_queues.h"
#include "rpc/worker.h"

namespace baton::rpc {

// What a member of a group tells the others about itself. Plain data.
struct GroupHello {
  uint64_t ticket = 0;  // names this membership at its worker
  WorkerInfo worker;
  SharedQueuesHandle queues;

  static constexpr auto Fields() {
    return std::tuple{&GroupHello::ticket, &GroupHello::worker,
                      &GroupHello::queues};
  }
};

// A worker's request to be in a group with others. Plain data.
struct GroupRequest {
  std::string key;                // equal at all members, unique for the group
  std::vector<WorkerInfo> seats;  // equal at all members
  int32_t seat = 0;
  bool survivors = false;  // if true, lost workers are left out
  int64_t patience_ms = 0;
  GroupHello hello;

  static constexpr auto Fields() {
    using R = GroupRequest;
    return std::tuple{&R::key,       &R::seats,       &R::seat,
                      &R::survivors, &R::patience_ms, &R::hello};
  }
};

// The members that have come, by rank, and the seat of each. Plain data.
struct GroupRoster {
  std::vector<int32_t> seats;
  std::vector<GroupHello> hellos;

  static constexpr auto Fields() {
    return std::tuple{&GroupRoster::seats, &GroupRoster::hellos};
  }
};

// Brings the members of groups together at the worker of one of them: once all
// have come, each is told who the members are. Thread-safe.
class GroupMeetings {
 public:
  // InvalidArgument if the request does not match the others'; Unavailable
  // names an expected worker that is lost.
  Future<GroupRoster> Join(GroupRequest request);
  // Called when the member with this ticket has waited too long. If it still
  // waits, the whole meeting fails with DeadlineExceeded, which names the
  // members that have not come.
  void Expire(const std::string& key, uint64_t ticket);
  void OnMember(const MemberEvent& event);
  // Returns why the worker is lost; OK if it is not.
  absl::Status WhyLost(const WorkerInfo& worker) const;

 private:
  struct Joined {
    GroupHello hello;
    Promise<GroupRoster> promise;
  };
  struct Meeting {
    std::vector<WorkerInfo> seats;
    bool survivors = false;
    std::map<int32_t, Joined> joined;  // by seat
  };
  using Meetings = std::map<std::string, Meeting>;
  // A meeting that is over, and the result that its members are told.
  struct Ended {
    Meeting meeting;
    ResultOf<GroupRoster> result;
    void Tell() const;
  };

  absl::Status WhyLostLocked(const WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes and returns the meetings that are over.
  std::vector<Ended> EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Meetings meetings_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, MemberEvent> lost_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace baton::rpc
