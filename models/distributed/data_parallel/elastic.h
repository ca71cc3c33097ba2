// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/variable.h"
#include "models/data/sampler.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/elastic_desk.h"
#include "models/nn/module.h"
#include "optim/optimizer.h"
#include "rpc/agent.h"
#include "rpc/collectives/process_group.h"
#include "rpc/registry.h"

namespace baton::dist {

// What the registry of every worker of a cluster needs that has elastic runs,
// beside rpc::RegisterCollectives; and what gives an agent its part of them,
// beside rpc::AttachCollectives, before it serves calls.
void RegisterElastic(rpc::Registry& registry);
void AttachElastic(rpc::Agent& agent);

struct ElasticOptions {
  std::string run = "elastic";  // the same of all members, as all of this is
  // The samples of an epoch, in order, of all members together.
  std::shared_ptr<const data::Sampler> samples;
  int64_t batch = 0;  // samples of a step, of all members together
  // With fewer members no step is taken: they wait for more. More than half of
  // max_members keeps two parts of a cluster that is cut from going on apart.
  int min_members = 1;
  int max_members = 1024;  // who comes then waits until one is lost
  // To get in, for members to be enough, and of collectives.
  std::chrono::milliseconds timeout{60'000};
  // Neither uneven_inputs nor shard_optimizer.
  DataParallelOptions data_parallel{};
};

// Data parallel training (DataParallel) whose members come and go between
// steps, on CPUs:
//
//   ASSIGN_OR_RETURN(auto training, dist::ElasticTraining::Make(
//       agent, model, sgd, {.samples = sampler, .batch = 64}));
//   while (training->epoch() < 10) {
//     ASSIGN_OR_RETURN(const auto step, training->Step([&](const auto& share) {
//       return nn::CrossEntropy(model(Images(share.samples)), ...);
//     }));
//   }
//
// A member comes with Make, at any time, and goes with its agent or its
// process, in order or not. Where one goes within a step, the step is either
// done, by all who are left, or none of it is, and it is taken again by those:
// so each sample of an epoch counts once. A newcomer takes parameters, buffers,
// optimizer state and place in the epoch from a member. The batch stays what it
// is, however many share it, and gradients are means over its samples: but for
// rounding (and batch norm, of each member's share) training goes on as if
// nobody had come or gone. Generators are each member's own.
//
// Errors of a member's own, and deadlines, end the run for all. DataLoss when
// nobody is left who has the state. Agent, module and optimizer, which steps
// parameters of the module alone, must outlive this. Thread-compatible.
class ElasticTraining {
 public:
  // A member's part of a step.
  struct Share {
    int64_t step = 0;  // from 0, of all epochs
    int64_t epoch = 0;
    std::vector<int64_t> samples;  // not empty
  };
  // The mean loss of the samples of a share. Called again, maybe with others,
  // where a member is lost in the step.
  using Loss = std::function<Variable(const Share& share)>;
  // The same at all members.
  struct Done {
    int64_t step = 0;
    int64_t epoch = 0;
    int members = 0;
    double loss = 0;  // mean over the step's samples
  };

  // Begins the run, or gets into one that others have begun, between two of
  // their steps; waits until it has enough members.
  static absl::StatusOr<std::unique_ptr<ElasticTraining>> Make(
      rpc::Agent& agent, nn::Module& module, optim::Optimizer& optimizer,
      ElasticOptions options);
  ~ElasticTraining();

  // Takes one step, with those who are there. Lets in who has come before.
  absl::StatusOr<Done> Step(const Loss& loss);

  // Of the step to come.
  int64_t step() const { return place_.step; }
  int64_t epoch() const { return place_.epoch; }
  // No sample of the epoch has been taken yet.
  bool at_epoch_start() const { return place_.sample == 0; }
  rpc::ProcessGroup& group() const { return *group_; }

 private:
  using Clock = std::chrono::steady_clock;
  // How far all of the state has come. Plain data.
  struct Place {
    int64_t step = -1;  // none: of one that has no state yet
    int64_t epoch = 0;
    int64_t sample = 0;  // of the epoch
  };
  ElasticTraining(rpc::Agent& agent, nn::Module& module,
                  optim::Optimizer& optimizer, ElasticOptions options,
                  std::shared_ptr<ElasticDesk> desk)
      : agent_(agent),
        module_(module),
        optimizer_(optimizer),
        options_(std::move(options)),
        handlers_(std::move(desk)) {}

  // Who is in (elastic_members.cc).
  absl::Status Enter();
  absl::Status TryToEnter(Clock::time_point deadline);
  absl::StatusOr<std::string> FindLeader();
  absl::StatusOr<std::shared_ptr<rpc::ProcessGroup>> MakeGroup(
      const std::string& name, const std::vector<rpc::WorkerInfo>& members);
  absl::Status Settle();
  absl::Status AwaitEnough(Clock::time_point deadline);
  absl::Status Shrink();
  absl::Status Grow();
  // The bytes of an invitation, at the leader, if there is somebody to invite.
  int64_t DraftInvitation();
  // Makes all members of a new group equal.
  absl::Status Agree();
  absl::Status TakeState(int from);

  // One step (elastic.cc).
  absl::StatusOr<Done> TryStep(const Loss& loss);
  std::vector<int64_t> OwnSamples(int64_t all) const;
  nn::StateMap Undoable() const;
  absl::Status Undo(const nn::StateMap& state);
  // Of a group that has lost a member, or that others go on without.
  static bool IsLoss(const absl::Status& status);
  void Advance(int64_t samples);
  const std::vector<int64_t>& Order();

  rpc::Agent& agent_;
  nn::Module& module_;
  optim::Optimizer& optimizer_;
  const ElasticOptions options_;
  const std::shared_ptr<ElasticDesk> handlers_;
  std::shared_ptr<rpc::ProcessGroup> group_;
  std::unique_ptr<DataParallel> parallel_;  // null until all have agreed
  Place place_;
  int64_t ordered_epoch_ = -1;  // that order_ is of
  std::vector<int64_t> order_;
  int64_t invited_ = 0;     // bytes of the invitation that all know of
  std::string invitation_;  // the leader's
  int64_t invitations_ = 0;
};

}  // namespace baton::dist
