// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/pipeline_trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/pipeline.h"
#include "rpc/spares.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

using std::chrono::seconds;

dist::PipelineOptions OptionsOfPipeline() {
  dist::PipelineOptions options;
  options.split_size = Training::kSplit;
  options.windows = dist::Windows::kOff;  // their futexes are not simulated
  options.compute_threads = 1;
  options.step_timeout = seconds(10);
  return options;
}

}  // namespace

PipelineTrainer::PipelineTrainer(rpc::Agent& agent, Rng& random,
                                 const Training& training, TrainingLog& log,
                                 Options options)
    : agent_(agent),
      random_(random),
      training_(training),
      log_(log),
      options_(std::move(options)),
      waits_(options_.standby) {}

void PipelineTrainer::Register(rpc::Registry& registry) {
  dist::Register(registry);
  dist::RegisterPipeline(registry);
  dist::RegisterOptimizer<optim::Sgd>(registry);
  dist::RegisterModule<testing::NoisyStage>(registry);
}

void PipelineTrainer::Step() {
  if (log_.over()) return;
  if (pipeline_ == nullptr) {
    if (!Waits()) Begin();
  } else if (random_.Chance(0.3)) {
    LookAt(static_cast<int>(random_.Below(stages_.size())));
  } else if (World::Get().now() >= next_) {
    next_ = World::Get().now() +
            Nanos(random_.Between(0, 2 * options_.pace.count()));
    Train();
  }
}

bool PipelineTrainer::Waits() const {
  return waits_ && absl::c_any_of(agent_.workers(), [this](const auto& worker) {
           return worker.name == options_.other &&
                  (refused_by_ == 0 || worker.incarnation == refused_by_);
         });
}

void PipelineTrainer::Begin() {
  waits_ = false;
  refused_by_ = 0;
  log_.Making(options_.group, agent_.self().incarnation);
  const absl::Status status = Make();
  World::Get().Trace(absl::StrCat("a pipeline: ", status.ToString()));
  if (status.ok()) {
    const dist::PipelineOptions& made = pipeline_->pipeline().options();
    return log_.Made(options_.group, pipeline_->steps(),
                     options_.journal.empty() ? "" : made.line, made.epoch);
  }
  log_.NotMade(options_.group, status);
  GiveUp(status);
}

void PipelineTrainer::GiveUp(const absl::Status& why) {
  waits_ = absl::IsPermissionDenied(why);
  const auto other = agent_.Find(options_.other);
  refused_by_ = waits_ && other.ok() ? other->incarnation : 0;
  Drop();
}

// Makes the stages at the first workers by rank, spares last.
absl::Status PipelineTrainer::MakeStages() {
  std::vector<rpc::WorkerInfo> workers = rpc::OthersButSpares(agent_);
  std::erase_if(workers, [this](const rpc::WorkerInfo& worker) {
    return worker.name == options_.other;
  });
  for (const rpc::WorkerInfo& spare : rpc::Spares(agent_))
    workers.push_back(spare);
  if (static_cast<int>(workers.size()) < training_.stages())
    return absl::UnavailableError("too few workers");
  for (int stage = 0; stage < training_.stages(); ++stage) {
    const auto make =
        [this, seed = training_.SeedOf(stage)](const rpc::Target& worker) {
          return Stage::Create(agent_, worker, Training::kWidth,
                               Training::kDrop, seed);
        };
    ASSIGN_OR_RETURN(const Stage made,
                     make(workers[static_cast<size_t>(stage)]).Await(kNoLimit));
    stages_.push_back(made);
    recovered_.emplace_back(made, make);
  }
  return absl::OkStatus();
}

absl::Status PipelineTrainer::Make() {
  RETURN_IF_ERROR(MakeStages());
  sgd_ = std::make_unique<dist::Optimizer<optim::Sgd>>(
      agent_, Training::kSgd,
      std::vector<dist::ParameterSource>(stages_.begin(), stages_.end()));
  dist::RecoveryOptions recovery;
  recovery.successor_timeout = seconds(30);
  recovery.timeout = seconds(60);
  recovery.most_redone = Training::kMostRedone;
  recovery.journal = options_.journal;
  recovery.grace = kGrace;
  ASSIGN_OR_RETURN(
      pipeline_, dist::RecoverablePipeline::Make(agent_, OptionsOfPipeline(),
                                                 recovery, recovered_, *sgd_));
  return absl::OkStatus();
}

void PipelineTrainer::Train() {
  if (pipeline_->steps() == training_.steps()) {
    for (int stage = 0; stage < training_.stages(); ++stage) LookAt(stage);
    const absl::Status finished = pipeline_->Finish();
    if (!finished.ok()) World::Get().Fail(finished.ToString());
    log_.Over(options_.group);  // from now on nobody takes it over
    waits_ = true;
    return Drop();
  }
  const int64_t step = pipeline_->steps() + 1;
  log_.Began(options_.group, step);
  const auto done =
      pipeline_->Step(training_.InputsOf(step), training_.TargetsOf(step));
  World::Get().Trace(absl::StrCat("step ", step, ": ", done.status().ToString(),
                                  ", recoveries: ", pipeline_->recoveries()));
  if (done.ok()) return log_.Ended(options_.group, done->loss);
  log_.Failed(options_.group, done.status());
  GiveUp(done.status());
}

void PipelineTrainer::LookAt(int stage) {
  const auto state =
      stages_[static_cast<size_t>(stage)].StateDict().Await(kNoLimit);
  if (state.ok()) log_.Saw(options_.group, stage, *state);
}

void PipelineTrainer::Drop() {
  pipeline_.reset();
  sgd_.reset();
  recovered_.clear();
  stages_.clear();
}

}  // namespace baton::sim
