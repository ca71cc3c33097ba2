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

// Records what an agent hears of other workers. Thread-safe.
class MemberNews {
 public:
  using Clock = std::chrono::steady_clock;

  static std::shared_ptr<MemberNews> Of(rpc::Agent& agent);
  // Done when the next event is heard.
  Future<void> Next() const;
  // Returns when the connection to a worker of this name first broke, or the
  // worker was lost, since the last Forget.
  std::optional<Clock::time_point> Broke(const std::string& name) const;
  void Forget();

 private:
  void Hear(const rpc::MemberEvent& event);

  mutable Mutex mutex_;
  Promise<void> next_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Clock::time_point> broke_ ABSL_GUARDED_BY(mutex_);
};

// Tracks which worker has each place of a recoverable pipeline, and which
// states the workers hold. Chooses the successor of a lost worker: a restarted
// worker of the same name, a spare (rpc/spares.h), or a worker that had a place
// before. Confined to one thread.
class PipelineMembers {
 public:
  using Clock = MemberNews::Clock;

  struct Member {
    rpc::WorkerInfo worker;
    RRef<StateStore> store{};  // unset before MakeStores
    bool has_modules = false;
  };
  PipelineMembers(rpc::Agent& agent,
                  const std::vector<rpc::WorkerInfo>& workers);

  // Adds workers that had a place in another trainer's pipeline. They may
  // become successors, and AwaitGivenUp waits for them, too.
  void AddNames(const std::vector<std::string>& names);
  // Makes the missing stores under this claim.
  absl::Status MakeStores(const StateClaim& claim);
  // Returns the latest epoch in which a worker of the cluster has received a
  // claim to that pipeline. Waits until workers that do not answer, such as a
  // killed trainer, are lost; returns Unavailable if one neither answers nor is
  // lost by the deadline.
  absl::StatusOr<uint64_t> ClaimedEpoch(const std::string& pipeline,
                                        Clock::time_point deadline);
  // Claims the states of all workers of the cluster. A trainer that takes over
  // a pipeline calls this instead of MakeStores and FindLost. Waits and fails
  // as ClaimedEpoch does.
  absl::Status TakeUp(const StateClaim& claim, Clock::time_point deadline);
  // The same during a recovery, only for workers that have or had a place.
  // Other workers have no states, and asking them could block if they hang.
  absl::Status TakeUpAgain(const StateClaim& claim, Clock::time_point deadline);
  // Calls the workers that once had a place and were given up, because they may
  // still be running, until one answers; TakeUp and TakeUpAgain then include
  // it. Returns false if there are no such workers, or at the deadline.
  bool AwaitGivenUp(const std::string& pipeline,
                    Clock::time_point deadline) const;
  // Returns the store that keeps a second copy of a place's states: it is at
  // the worker of the next place, or in this process if there is only one
  // worker.
  const RRef<StateStore>& BuddyOf(size_t place) const;

  // Waits until each member is gone or has answered; those that answer refuse
  // writes of earlier epochs from then on. Returns the places of the members
  // that are gone. Returns Unavailable at the deadline, and PermissionDenied
  // once another trainer has taken over the pipeline.
  absl::StatusOr<std::vector<size_t>> FindLost(uint64_t epoch,
                                               Clock::time_point deadline);
  // Gives these places to other workers, and waits until there are enough.
  // Returns Unavailable at the deadline; the text names the worker that has no
  // successor.
  absl::Status Replace(const std::vector<size_t>& lost,
                       Clock::time_point deadline);
  // Call this after FindLost. Returns the newest step, at most `most`, for
  // which the states of all places still exist, and where each of them is;
  // nullopt if there is no such step.
  struct Kept {
    int64_t step = 0;
    std::vector<RRef<StateStore>> stores{};  // one for each place
  };
  std::optional<Kept> NewestKept(int64_t most) const;

  std::vector<Member>& all() { return members_; }
  const std::vector<Member>& all() const { return members_; }
  MemberNews& news() const { return *news_; }

 private:
  bool IsThere(const rpc::WorkerInfo& worker) const;
  std::vector<rpc::WorkerInfo> Others() const;
  // Returns the workers that had a place, were given up and may come back.
  std::vector<rpc::WorkerInfo> GivenUp() const;
  // Returns the answers ask(worker) of those workers that are not lost. Asks
  // again while a worker cannot be reached, until it answers or is lost, or the
  // deadline has passed.
  template <typename T>
  absl::StatusOr<std::vector<T>> AskEach(
      const std::vector<rpc::WorkerInfo>& workers,
      const std::function<Future<T>(const rpc::WorkerInfo&)>& ask,
      Clock::time_point deadline) const;
  absl::Status TakeUpFrom(const std::vector<rpc::WorkerInfo>& workers,
                          const StateClaim& claim, Clock::time_point deadline);
  bool IsGone(const Member& member) const;
  std::optional<rpc::WorkerInfo> SuccessorOf(const Member& lost) const;

  rpc::Agent& agent_;
  const std::shared_ptr<MemberNews> news_;
  std::vector<Member> members_;
  // The names of all workers that ever had a place, also under an earlier
  // trainer.
  std::vector<std::string> names_;
  RRef<StateStore> here_;  // the buddy if there is only one worker
  // The answers of the last FindLost or TakeUp: which store has which states.
  struct Answer {
    RRef<StateStore> store;
    std::vector<KeptState> kept;
  };
  std::vector<Answer> answers_;
};

}  // namespace baton::dist
