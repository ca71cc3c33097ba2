// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/state_store.h"
#include "rpc/agent.h"

namespace baton::dist {

// What an agent hears of other workers. Thread-safe.
class MemberNews {
 public:
  using Clock = std::chrono::steady_clock;

  static std::shared_ptr<MemberNews> Of(rpc::Agent& agent);
  // Done at the next news.
  Future<void> Next() const;
  // When the connection to a worker of this name first broke, or it was lost,
  // since the last Forget.
  std::optional<Clock::time_point> Broke(const std::string& name) const;
  void Forget();

 private:
  void Hear(const rpc::MemberEvent& event);

  mutable Mutex mutex_;
  Promise<void> next_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Clock::time_point> broke_ ABSL_GUARDED_BY(mutex_);
};

// Which worker has which place in a pipeline that is recovered, what states
// they have, and who takes the place of one that is lost: one of its name, a
// spare (rpc/spares.h), or one that had a place before. Confined to one thread.
class PipelineMembers {
 public:
  using Clock = MemberNews::Clock;

  struct Member {
    rpc::WorkerInfo worker;
    RRef<StateStore> store{};  // none before MakeStores
    bool has_modules = false;
  };
  PipelineMembers(rpc::Agent& agent,
                  const std::vector<rpc::WorkerInfo>& workers);

  // Makes those that are missing, under that claim.
  absl::Status MakeStores(const StateClaim& claim);
  // The latest epoch under which any worker of the cluster has heard a claim to
  // that pipeline. Those that do not answer, as a trainer that was killed, are
  // waited for until they are lost.
  absl::StatusOr<uint64_t> ClaimedEpoch(const std::string& pipeline);
  // In place of MakeStores and FindLost, for a trainer that takes a pipeline
  // up: claims the states of all workers of the cluster.
  absl::Status TakeUp(const StateClaim& claim);
  // Where the states of a place are kept beside its own store: at the next
  // place, or of a single worker here.
  const RRef<StateStore>& BuddyOf(size_t place) const;

  // Waits until each member has answered, which then takes nothing from earlier
  // epochs, or is gone. Their places; Unavailable after the deadline, and
  // PermissionDenied once another trainer has taken the pipeline over.
  absl::StatusOr<std::vector<size_t>> FindLost(uint64_t epoch,
                                               Clock::time_point deadline);
  // Gives their places to others, waiting for such. Unavailable after the
  // deadline names the one that nobody follows.
  absl::Status Replace(const std::vector<size_t>& lost,
                       Clock::time_point deadline);
  // After FindLost: the newest step up to `most` after which the state of every
  // place is still somewhere, and where each is. None: there is no such step.
  struct Kept {
    int64_t step = 0;
    std::vector<RRef<StateStore>> stores{};  // of each place
  };
  std::optional<Kept> NewestKept(int64_t most) const;

  std::vector<Member>& all() { return members_; }
  MemberNews& news() const { return *news_; }

 private:
  bool IsThere(const rpc::WorkerInfo& worker) const;
  std::vector<rpc::WorkerInfo> Others() const;
  // Of ask(worker) for each of the others, but for those that are lost.
  template <typename T>
  absl::StatusOr<std::vector<T>> AskOthers(
      const std::function<Future<T>(const rpc::WorkerInfo&)>& ask) const;
  bool IsGone(const Member& member) const;
  std::optional<rpc::WorkerInfo> SuccessorOf(const Member& lost) const;

  rpc::Agent& agent_;
  const std::shared_ptr<MemberNews> news_;
  std::vector<Member> members_;
  std::vector<std::string> names_;  // of all that had a place
  RRef<StateStore> here_;           // the only worker's buddy
  // Of the last FindLost or TakeUp: who has what.
  struct Answer {
    RRef<StateStore> store;
    std::vector<KeptState> kept;
  };
  std::vector<Answer> answers_;
};

}  // namespace baton::dist
