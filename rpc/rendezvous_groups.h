// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/rendezvous.h"

namespace baton::rpc {

// Who waits for whom at a rendezvous, without a word of gRPC. Thread-safe.
class RendezvousGroups {
 public:
  using Result = absl::StatusOr<std::vector<WorkerInfo>>;
  // Called once for each Enter: within it or later, under the lock; it must
  // not come back here.
  using Done = std::function<void(const Result&)>;

  void Enter(const JoinOptions& options, Done done);
  // The caller's time is up, or it has gone.
  void Expire(const std::string& cluster, const WorkerInfo& self);
  void Cancel(const std::string& cluster, const WorkerInfo& self);
  absl::Status Leave(const std::string& cluster, const std::string& name,
                     uint64_t incarnation);
  void Close();

 private:
  struct Waiting {
    JoinOptions options;
    Done done;
  };
  struct Group {
    int world_size = 0;
    std::vector<Waiting> waiting;
    std::set<std::string> doubled;    // names that two workers came with
    std::vector<WorkerInfo> members;  // by rank, once complete
    bool ending = false;  // some members left; once all have, the next may meet
  };

  absl::Status Check(const JoinOptions& options) const;
  absl::Status Admit(Group& group, const JoinOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteIfAllCame(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the wait of that worker, if it waits.
  void Remove(const std::string& cluster, const WorkerInfo& self,
              const std::function<absl::Status(const Group&)>& why);

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
