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

// What a member of a group tells the others of itself. Plain data.
struct GroupHello {
  uint64_t ticket = 0;  // names its part of the group at its worker
  WorkerInfo worker;
  SharedQueuesHandle queues;

  static constexpr auto Fields() {
    return std::tuple{&GroupHello::ticket, &GroupHello::worker,
                      &GroupHello::queues};
  }
};

// One worker's wish to be in a group with others. Plain data.
struct GroupRequest {
  std::string key;                // the same of all, and of no other group
  std::vector<WorkerInfo> seats;  // the same of all
  int32_t seat = 0;
  bool survivors = false;  // without those that are lost by the time
  int64_t patience_ms = 0;
  GroupHello hello;

  static constexpr auto Fields() {
    using R = GroupRequest;
    return std::tuple{&R::key,       &R::seats,       &R::seat,
                      &R::survivors, &R::patience_ms, &R::hello};
  }
};

// Who has come, by rank, and where each sits. Plain data.
struct GroupRoster {
  std::vector<int32_t> seats;
  std::vector<GroupHello> hellos;

  static constexpr auto Fields() {
    return std::tuple{&GroupRoster::seats, &GroupRoster::hellos};
  }
};

// Where the members of groups meet, at the worker of one of them: each is told
// who there is once all have come. Thread-safe.
class GroupMeetings {
 public:
  // InvalidArgument for a request that does not fit the others'; Unavailable
  // names a worker that is lost and was to come.
  Future<GroupRoster> Join(GroupRequest request);
  // The wish of one that has waited for too long: all of them fail with
  // DeadlineExceeded, which names who has not come.
  void Expire(const std::string& key, uint64_t ticket);
  void OnMember(const MemberEvent& event);
  // Why it is lost; OK for one that is not.
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
  // A meeting that is over, and what all are to be told.
  struct Ended {
    Meeting meeting;
    ResultOf<GroupRoster> result;
    void Tell() const;
  };

  absl::Status WhyLostLocked(const WorkerInfo& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out those that are over.
  std::vector<Ended> EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Meetings meetings_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, MemberEvent> lost_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace baton::rpc
