// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"
#include "examples/support/participants.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/agent.h"

namespace baton::examples {

// The servers and trainers of one model, seen from the process that directs
// them. Trainers may be lost, and workers that join become trainers. Must not
// outlive the agent. Confined to one thread.
class HybridTraining {
 public:
  struct Options {
    HybridTask task;
    dist::ServerOptions servers;
    int64_t most_trainers = 0;  // 0: all workers that do not serve
  };
  static absl::StatusOr<std::unique_ptr<HybridTraining>> Make(
      rpc::Agent& agent, const Crew& crew, const Options& options);

  // Trains until `steps` steps are done in all; calls `on_step` for each, with
  // the longest times of all trainers. Returns Unavailable, which says why, if
  // no trainer is left that has the model, or a server is lost.
  using OnStep = std::function<void(const HybridStep&)>;
  absl::Status TrainUntil(int64_t steps, const OnStep& on_step);
  absl::StatusOr<double> Perplexity();
  // Returns an error unless all trainers have the same bits.
  absl::Status CheckEqual();

  int64_t lost_trainers() const { return trainers_.lost(); }

 private:
  using Trainers = Participants<HybridTrainer>;
  struct Told {
    Trainers::Present trainer;
    absl::StatusOr<HybridStep> step;
  };
  // What trainers have told and nobody has taken yet. Thread-safe.
  class Inbox {
   public:
    void Put(Told told);
    // Returns nullopt if nothing comes by the deadline.
    std::optional<Told> Take(std::chrono::steady_clock::time_point deadline);

   private:
    Mutex mutex_;
    CondVar changed_;
    std::deque<Told> told_ ABSL_GUARDED_BY(mutex_);
  };

  HybridTraining(rpc::Agent& agent, const Crew& crew, const Options& options);
  void BeginStep(const Trainers::Present& trainer);
  // Has the trainers begin that have not begun since TrainUntil was called.
  absl::Status BeginAll();
  // A trainer has taken a step, or failed.
  absl::Status OnTold(const Told& told, int64_t steps, const OnStep& on_step);
  // Adds what is told of a step; passes the one before on.
  absl::Status Merge(const HybridStep& step, const OnStep& on_step);
  void PassOn(const OnStep& on_step);
  // Makes call(trainer, i, n) for the i-th of all n trainers. Leaves out those
  // that are lost.
  template <typename R>
  absl::StatusOr<std::vector<R>> OfEach(
      const std::function<Future<R>(const RRef<HybridTrainer>& trainer,
                                    int64_t i, int64_t n)>& call);

  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  Future<void> server_lost_;
  std::unique_ptr<dist::ParameterServers> servers_;
  int64_t ranks_ = 0;  // given so far
  Trainers trainers_;
  std::set<uint64_t> begun_;  // incarnations of their workers
  int64_t at_work_ = 0;
  bool someone_has_ended_ = false;  // all steps, rather than been lost
  int64_t next_ = 0;                // step
  std::optional<HybridStep> told_;  // the last step, if not passed on yet
};

}  // namespace baton::examples
