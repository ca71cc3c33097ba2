// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "models/data/sampler.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/elastic_handlers.h"
#include "models/nn/module.h"
#include "optim/optimizer.h"
#include "rpc/agent.h"
#include "rpc/collectives/process_group.h"
#include "rpc/registry.h"

namespace baton::dist {

// A cluster with elastic runs needs RegisterElastic in every worker's registry,
// and AttachElastic on each agent before it serves calls, besides
// rpc::RegisterCollectives and rpc::AttachCollectives.
void RegisterElastic(rpc::Registry& registry);
void AttachElastic(rpc::Agent& agent);

struct ElasticOptions {
  std::string run = "elastic";  // options are the same at all members
  // The samples of an epoch, in order, for all members together.
  std::shared_ptr<const data::Sampler> samples;
  int64_t batch = 0;  // samples per step, for all members together
  // If given: the first of these workers that is there begins the run, and the
  // first step waits for all of them but for those that are lost, also if they
  // are started again. Else whoever comes first begins at once.
  std::vector<rpc::WorkerInfo> first_workers{};
  // This member, unlike others, begins no run: Make returns DataLoss if there
  // is none, or it ends before it lets this one in.
  bool only_joins = false;
  // With fewer members no step is taken; they wait for more. If this is more
  // than half of max_members, two parts of a partitioned cluster cannot both
  // continue.
  int min_members = 1;
  int max_members = 1024;  // further ones wait until a member is lost
  // The limit for joining, for waiting for enough members, and for collectives.
  std::chrono::milliseconds timeout{60'000};
  // uneven_inputs and shard_optimizer must not be set.
  DataParallelOptions data_parallel{};
};

// Data parallel training (DataParallel) with members that join and leave
// between steps, on CPUs:
//
//   ASSIGN_OR_RETURN(auto training, dist::ElasticTraining::Make(
//       agent, model, sgd, {.samples = sampler, .batch = 64}));
//   while (training->epoch() < 10) {
//     ASSIGN_OR_RETURN(const auto step, training->Step([&](const auto& share) {
//       return nn::CrossEntropy(model(Images(share.samples)), ...);
//     }));
//   }
//
// A member may join at any time, by Make, and leaves when its agent or its
// process ends, orderly or not. If it leaves within a step, the remaining
// members either all complete the step or all undo and repeat it, so that each
// sample of an epoch counts once. A newcomer takes parameters, buffers, the
// optimizer's state and the place in the epoch from a member. The batch keeps
// its size, however many members share it, and gradients are means over its
// samples: except for rounding (and batch norm, which sees each member's
// share), training continues as if nobody had joined or left. Each member has
// its own generators.
//
// A loss may depend on calls of a context, for instance on rows of parameter
// servers (server/embedding.h), which are stepped once for each step that
// counts. Servers that wait for all trainers wait for members that do not know
// yet that it counts, and must not keep the others from telling them:
//  - EmbeddingOptions::step_awaits_trainers is set.
//  - max_members is at most the samples of each step, so that all members push.
//  - A member joins the servers after Make, before its first step.
//
// A member's own errors, and deadlines, end the run for all. DataLoss means
// that no remaining member has the state. The optimizer must step only
// parameters of the module. Agent, module and optimizer must outlive this.
// Thread-compatible.
class ElasticTraining {
 public:
  // One member's part of a step.
  struct Share {
    int64_t step = 0;  // counts from 0 over all epochs
    int64_t epoch = 0;
    std::vector<int64_t> samples;  // not empty
  };
  // Returns the mean loss of a share's samples. It is called again, possibly
  // with other samples, if a member is lost during the step.
  using Loss = std::function<Variable(const Share& share)>;
  // The same through the calls of a context, of which each try has its own.
  using ContextLoss =
      std::function<absl::StatusOr<Variable>(Context& ctx, const Share& share)>;
  // The result of a step; the same at all members but for the time.
  struct Done {
    int64_t step = 0;
    int64_t epoch = 0;
    int32_t members = 0;
    double loss = 0;      // mean over the step's samples
    double waited_s = 0;  // here, for the others' gradients, after backward
    static constexpr auto Fields() {
      return std::tuple{&Done::step, &Done::epoch, &Done::members, &Done::loss};
    }
  };

  // Begins the run, or joins one that others have begun, between two of their
  // steps; waits until the run has enough members.
  static absl::StatusOr<std::unique_ptr<ElasticTraining>> Make(
      rpc::Agent& agent, nn::Module& module, optim::Optimizer& optimizer,
      ElasticOptions options);
  ~ElasticTraining();

  // Takes one step with the present members; first admits waiting newcomers.
  absl::StatusOr<Done> Step(const Loss& loss);
  // Returns when the context has stepped what is not here
  // (Context::StepOthers). If members are lost while this waits, it helps the
  // others to complete or to undo the step.
  absl::StatusOr<Done> Step(const ContextLoss& loss);

  // These return the numbers of the next step.
  int64_t step() const { return place_.step; }
  int64_t epoch() const { return place_.epoch; }
  // Returns true if no sample of the epoch has been taken yet.
  bool at_epoch_start() const { return place_.sample == 0; }
  rpc::ProcessGroup& group() const { return *group_; }

 private:
  using Clock = std::chrono::steady_clock;
  // The progress of the training state. Plain data.
  struct Place {
    int64_t step = -1;  // -1: there is no state yet
    int64_t epoch = 0;
    int64_t sample = 0;  // index in the epoch
  };
  ElasticTraining(rpc::Agent& agent, nn::Module& module,
                  optim::Optimizer& optimizer, ElasticOptions options,
                  std::shared_ptr<ElasticHandlers> handlers)
      : agent_(agent),
        module_(module),
        optimizer_(optimizer),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        begun_(options_.first_workers.empty()) {}

  // Membership (elastic_members.cc).
  absl::Status Enter();
  absl::Status TryToEnter(Clock::time_point deadline);
  absl::StatusOr<std::string> FindLeader();
  bool MayBegin(const std::string& worker) const;
  absl::StatusOr<std::shared_ptr<rpc::ProcessGroup>> MakeGroup(
      const std::string& name, const std::vector<rpc::WorkerInfo>& members);
  absl::Status Mend();
  absl::Status Settle();
  // Whether those of ElasticOptions::first_workers that are there are members.
  bool FirstAreIn() const;
  absl::Status AwaitEnough(Clock::time_point deadline);
  absl::Status Shrink();
  absl::Status Grow();
  // Called at the leader: drafts an invitation if there are newcomers, and
  // returns its size in bytes.
  int64_t DraftInvitation();
  // Makes the state of all members of a new group equal.
  absl::Status Agree();
  absl::Status TakeState(int from);

  // Steps (elastic.cc). Without a context, `ctx` is null.
  using AnyLoss =
      std::function<absl::StatusOr<Variable>(Context* ctx, const Share& share)>;
  absl::StatusOr<Done> TakeStep(const AnyLoss& loss, bool in_context);
  // Returns OK without a step if it must be repeated.
  absl::Status TakeOrUndo(const AnyLoss& loss, Context* ctx);
  // Begins what the context steps elsewhere: `others` is done with it.
  absl::Status TryStep(const AnyLoss& loss, Context* ctx, Future<void>& others);
  absl::Status BackwardFrom(const Variable& output, Context* ctx);
  absl::Status AwaitOthers(const Future<void>& others);
  std::vector<int64_t> OwnSamples(int64_t all) const;
  nn::StateMap Undoable() const;
  absl::Status Undo(const nn::StateMap& state);
  // Returns true if the group has lost a member, or if the others continue
  // without this one.
  static bool IsLoss(const absl::Status& status);
  void Advance(int64_t samples);
  const std::vector<int64_t>& Order();

  rpc::Agent& agent_;
  nn::Module& module_;
  optim::Optimizer& optimizer_;
  const ElasticOptions options_;
  const std::shared_ptr<ElasticHandlers> handlers_;
  std::shared_ptr<rpc::ProcessGroup> group_;
  std::unique_ptr<DataParallel> parallel_;  // null until all members have
                                            // agreed
  Place place_;
  bool begun_;  // the first step no longer waits for first_workers
  Done last_;   // the step before place_
  int64_t ordered_epoch_ = -1;  // the epoch of order_
  std::vector<int64_t> order_;
  int64_t invited_ = 0;     // bytes of the invitation that all members know of
  std::string invitation_;  // at the leader
  int64_t invitations_ = 0;
};

}  // namespace baton::dist
