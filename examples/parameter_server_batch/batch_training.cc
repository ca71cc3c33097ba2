// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server_batch/batch_training.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "examples/parameter_server_batch/batch_trainer.h"
#include "models/data/open.h"
#include "models/nn/loss.h"
#include "models/nn/scopes.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kEvaluated = 250;  // images at a time

// The trainers of one run. Thread-safe.
class Trainers : public std::enable_shared_from_this<Trainers> {
 public:
  Trainers(rpc::Agent& agent, const BatchTask& task, RRef<BatchServer> server)
      : agent_(agent), task_(task), server_(std::move(server)) {}

  void Start(const std::string& worker) {
    int64_t number = 0;
    {
      const MutexLock lock(mutex_);
      if (over_) return;
      number = begun_++;
      ++training_;
    }
    rpc::Create<BatchTrainer>(agent_, worker, task_, server_, number)
        .Then([](const RRef<BatchTrainer>& trainer) {
          return trainer
              .Async<&BatchTrainer::Train>(
                  rpc::CallOptions{.timeout = kNoLimit})
              .Then([trainer](int64_t reports) { return reports; });
        })
        .OnReady([self = shared_from_this(),
                  worker](const absl::StatusOr<int64_t>& reports) {
          self->OnEnd(worker, reports.status());
        });
  }
  // From now on workers that join get no trainer.
  void Close() {
    const MutexLock lock(mutex_);
    over_ = true;
  }

  // Returns Unavailable when all trainers have failed.
  absl::Status Check() const {
    const MutexLock lock(mutex_);
    if (training_ > 0 || lost_ < begun_) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("no trainer is left; the last one ended with: ", why_));
  }
  int64_t begun() const {
    const MutexLock lock(mutex_);
    return begun_;
  }
  int64_t lost() const {
    const MutexLock lock(mutex_);
    return lost_;
  }
  int64_t training() const {
    const MutexLock lock(mutex_);
    return training_;
  }

 private:
  void OnEnd(const std::string& worker, const absl::Status& status) {
    const MutexLock lock(mutex_);
    --training_;
    if (status.ok()) return;
    ++lost_;
    why_ = std::string(status.message());
    LogWarning("the trainer at worker ", worker, " is lost: ", why_);
  }

  rpc::Agent& agent_;
  const BatchTask task_;
  const RRef<BatchServer> server_;
  mutable Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t training_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string why_ ABSL_GUARDED_BY(mutex_);
};

// Measures the model's accuracy on the test images.
class Examiner {
 public:
  static absl::StatusOr<Examiner> Make(const BatchRun& run) {
    ASSIGN_OR_RETURN(auto dataset,
                     data::OpenDataset(run.test_data, data::Split::kTest));
    data::LoaderOptions options;
    options.batch = run.test_images == 0
                        ? kEvaluated
                        : std::min(kEvaluated, run.test_images);
    options.shuffle = true;  // files are sorted by class
    options.workers = 1;
    options.transform = data::CifarTesting();
    Examiner examiner;
    examiner.limit_ = run.test_images == 0 ? dataset->size() : run.test_images;
    ASSIGN_OR_RETURN(examiner.loader_, data::Loader::Make(std::move(dataset),
                                                          std::move(options)));
    ASSIGN_OR_RETURN(examiner.model_, models::ResNet::Make(run.task.model));
    ASSIGN_OR_RETURN(examiner.flat_, FlatModel::Make(*examiner.model_));
    return examiner;
  }

  absl::StatusOr<double> Accuracy(const ModelState& state) {
    flat_->CopyFrom(state);
    const nn::EvalScope evaluating(*model_);
    const NoGrad no_grad;
    int64_t right = 0, all = 0;
    loader_->StartEpoch(0);
    while (all < limit_) {
      ASSIGN_OR_RETURN(const std::optional<data::Batch> batch, loader_->Next());
      if (!batch.has_value()) break;
      right += nn::CountCorrect(model_->Forward(batch->images).tensor(),
                                batch->labels);
      all += batch->size();
    }
    return static_cast<double>(right) / static_cast<double>(all);
  }

 private:
  std::unique_ptr<models::ResNet> model_;
  std::optional<FlatModel> flat_;  // of model_
  std::unique_ptr<data::Loader> loader_;
  int64_t limit_ = 0;
};

std::shared_ptr<Trainers> StartTrainers(rpc::Agent& agent, const BatchRun& run,
                                        const RRef<BatchServer>& server) {
  auto trainers = std::make_shared<Trainers>(agent, run.task, server);
  for (const std::string& worker : run.trainers) trainers->Start(worker);
  agent.WatchMembers([weak = std::weak_ptr<Trainers>(trainers),
                      not_there = run.server](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kJoined) return;
    const auto self = weak.lock();
    if (self != nullptr && event.worker.name != not_there)
      self->Start(event.worker.name);
  });
  return trainers;
}

}  // namespace

absl::StatusOr<BatchOutcome> TrainByBatches(
    rpc::Agent& agent, const BatchRun& run,
    const std::function<bool(const BatchPoint&)>& on_point) {
  ASSIGN_OR_RETURN(Examiner examiner, Examiner::Make(run));
  ASSIGN_OR_RETURN(
      const RRef<BatchServer> server,
      rpc::Create<BatchServer>(agent, run.server, run.task).Await(kNoLimit));
  const auto trainers = StartTrainers(agent, run, server);
  BatchOutcome outcome;
  const auto begin = Clock::now();
  for (bool over = false; !over;) {
    ASSIGN_OR_RETURN(
        over, server
                  .Async<&BatchServer::IsOver>(
                      rpc::CallOptions{.timeout = kNoLimit}, run.report_every)
                  .Await(kNoLimit));
    if (!over) RETURN_IF_ERROR(trainers->Check());
    ASSIGN_OR_RETURN(const ModelState state,
                     server.Async<&BatchServer::Read>().Await());
    BatchPoint point;
    ASSIGN_OR_RETURN(point.status,
                     server.Async<&BatchServer::Status>().Await());
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    point.seconds = seconds.count();
    ASSIGN_OR_RETURN(point.accuracy, examiner.Accuracy(state));
    outcome.points.push_back(point);
    if (on_point(point) || over) continue;
    RETURN_IF_ERROR(server.Async<&BatchServer::Stop>().Await());
    over = true;
  }
  trainers->Close();
  outcome.begun = trainers->begun();
  outcome.lost = trainers->lost();
  return outcome;
}

absl::StatusOr<PushFigures> MeasureReports(rpc::Agent& agent,
                                           const BatchRun& run,
                                           int64_t pushes) {
  BatchTask task = run.task;
  task.steps = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(
      const RRef<BatchServer> server,
      rpc::Create<BatchServer>(agent, run.server, task).Await(kNoLimit));
  std::vector<Future<RRef<ReportPusher>>> making;
  for (const std::string& worker : run.trainers)
    making.push_back(rpc::Create<ReportPusher>(agent, worker, task, server));
  ASSIGN_OR_RETURN(const auto trainers, WaitAll(making).Await(kNoLimit));
  std::vector<Future<int64_t>> joining;
  for (const RRef<ReportPusher>& trainer : trainers)
    joining.push_back(trainer.Async<&ReportPusher::Join>());
  ASSIGN_OR_RETURN(const auto bytes, WaitAll(joining).Await(kNoLimit));
  return MeasurePushers(trainers, pushes, bytes.front());
}

}  // namespace baton::examples
