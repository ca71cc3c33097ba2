// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server/experiment.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/tensors_of.h"
#include "core/status.h"
#include "examples/support/participants.h"
#include "models/resnet.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;
using Values = std::vector<std::pair<std::string, Tensor>>;

absl::StatusOr<Values> GradientsLike(const std::string& name) {
  Values values;
  if (name == "lenet") {
    const Shape shapes[] = {
        Shape({20, 1, 3, 3}), Shape({20}),  Shape({50, 20, 5, 5}), Shape({50}),
        Shape({800, 128}),    Shape({128}), Shape({128, 10}),      Shape({10})};
    for (const Shape& shape : shapes)
      values.emplace_back(absl::StrCat(values.size()), Tensor::Zeros(shape));
    return values;
  }
  if (name != "resnet50") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gradients are those of lenet or resnet50, not of '", name, "'"));
  }
  models::ResNetOptions options;
  options.depth = 50;
  ASSIGN_OR_RETURN(const auto resnet, models::ResNet::Make(options));
  return NamedValues(*resnet);
}

// One result for each trainer; nullopt if it is lost meanwhile.
using OfTrainers = std::vector<std::optional<double>>;

// The trainers of one training, including those that join it. Confined to one
// thread.
class LeNetTrainers {
 public:
  // Each trainer has made `first` pushes before.
  LeNetTrainers(rpc::Agent& agent, const Crew& crew, const LeNetTask& task,
                const RRef<dist::ServerDirectory>& directory, int64_t first)
      : first_(first),
        trainers_(
            agent,
            [this, &agent, task, directory](const std::string& worker) {
              return rpc::Create<LeNetTrainer>(agent, worker, task, directory,
                                               ranks_++);
            },
            /*most=*/0, crew.servers) {}

  // Starts `pushes` pushes at each present trainer that has not begun.
  absl::Status Begin(int64_t pushes, Participants<LeNetTrainer>::Wait wait) {
    if (pushes <= 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto present, trainers_.Muster(wait));
    for (const auto& [worker, trainer] : present) {
      if (!begun_.insert(worker.incarnation).second) continue;
      pushes_.push_back(pushes);
      losses_.push_back(UnlessLost<double>(trainer.Async<&LeNetTrainer::Train>(
          rpc::CallOptions{.timeout = kNoLimit}, first_, pushes)));
    }
    return absl::OkStatus();
  }
  // Returns the losses of all trainers that have begun.
  Future<OfTrainers> losses() const { return WaitAll(losses_); }
  int64_t running() const {
    return std::count_if(losses_.begin(), losses_.end(),
                         [](const auto& loss) { return !loss.ready(); });
  }
  // Call this when all trainers have ended.
  absl::Status Conclude(AccuracyCurve& curve) const {
    ASSIGN_OR_RETURN(const OfTrainers all, losses().Await());
    ASSIGN_OR_RETURN(const std::vector<double> last, ThoseThere(all));
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].has_value()) curve.pushes += pushes_[i];
    curve.lost = static_cast<int64_t>(all.size() - last.size());
    curve.loss = std::accumulate(last.begin(), last.end(), 0.0) /
                 static_cast<double>(last.size());
    return absl::OkStatus();
  }

 private:
  const int64_t first_;
  int64_t ranks_ = 0;  // given so far
  Participants<LeNetTrainer> trainers_;
  std::set<uint64_t> begun_;  // by their workers' incarnations
  std::vector<int64_t> pushes_;
  std::vector<Future<std::optional<double>>> losses_;
};

using Servers = std::unique_ptr<dist::ParameterServers>;

absl::StatusOr<Servers> ServersOf(rpc::Agent& agent, const Crew& crew,
                                  const AccuracyRun& run,
                                  const Values& values) {
  dist::ServerOptions options = run.options;
  for (const std::string& trainer : crew.trainers) {
    ASSIGN_OR_RETURN(options.trainer_workers.emplace_back(),
                     agent.Find(trainer));
  }
  if (run.saving.resume != Saving::Resume::kNo) {
    auto resumed = dist::ParameterServers::Resume(
        agent, crew.servers, options, values, run.saving.checkpoints.folder,
        run.saving.if_broken());
    if (resumed.ok()) return std::move(resumed->servers);
    if (!absl::IsNotFound(resumed.status())) return resumed.status();
  }
  return dist::ParameterServers::Make(agent, crew.servers, options, values);
}

// Returns how many pushes of each trainer lead to this version.
int64_t StepOf(const dist::ServerOptions& options, int64_t version) {
  return options.mode == dist::Consistency::kBulkSynchronous
             ? version
             : version / options.trainers;
}

// Saves the servers when a save is due.
class Saver {
 public:
  Saver(const dist::ParameterServers& servers, const AccuracyRun& run,
        int64_t images, int64_t step)
      : servers_(servers),
        saving_(run.saving),
        every_(saving_.every > 0
                   ? saving_.every
                   : std::max<int64_t>(
                         1, images / (run.task.batch * run.task.trainers))),
        saved_(step) {}

  absl::Status OnStep(int64_t step, bool over) {
    const bool due = over ? step > saved_ : step / every_ > saved_ / every_;
    if (!saving_.on() || !due) return absl::OkStatus();
    saved_ = step;
    return servers_.Save(saving_.checkpoints, step);
  }

 private:
  const dist::ParameterServers& servers_;
  const Saving& saving_;
  const int64_t every_;
  int64_t saved_;
};

}  // namespace

absl::StatusOr<AccuracyCurve> TrainLeNet(
    rpc::Agent& agent, const Crew& crew, const AccuracyRun& run,
    const std::function<void(const AccuracyPoint&)>& on_point) {
  ASSIGN_OR_RETURN(const SplitDigits digits, LoadDigits(run.task.data));
  Generator generator(run.task.seed);
  models::LeNet model(generator);
  ASSIGN_OR_RETURN(const Servers servers,
                   ServersOf(agent, crew, run, NamedValues(model)));
  ASSIGN_OR_RETURN(
      const auto reader,
      dist::ServerClient::Join(agent, servers->directory(), std::nullopt));
  using Wait = Participants<LeNetTrainer>::Wait;
  ASSIGN_OR_RETURN(const dist::Pulled start, reader->Pull().Await(kNoLimit));
  AccuracyCurve curve;
  curve.resumed_from = StepOf(run.options, start.Version());
  const int64_t pushes = run.pushes - curve.resumed_from;
  if (pushes <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        run.saving.checkpoints.folder, " has a training of ",
        curve.resumed_from, " pushes of each trainer: give more --pushes"));
  }
  LeNetTrainers trainers(agent, crew, run.task, servers->directory(),
                         curve.resumed_from);
  Saver saver(*servers, run, digits.training.size(), curve.resumed_from);
  RETURN_IF_ERROR(trainers.Begin(pushes, Wait::kForAll));
  const auto begin = Clock::now();
  for (bool over = false; !over;) {
    const Future<OfTrainers> losses = trainers.losses();
    const auto ended = losses.Await(run.report_every);
    over = losses.ready();
    if (over && !ended.ok()) return losses.Await().status();
    ASSIGN_OR_RETURN(const dist::Pulled pulled, reader->Pull().Await(kNoLimit));
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    pulled.CopyTo(TensorsOf(model.Parameters()));
    const dist::ExchangeReply& shard = pulled.shards.front();
    curve.points.push_back({.seconds = seconds.count(),
                            .version = pulled.Version(),
                            .accuracy = Accuracy(model, digits.held_out),
                            .trainers = trainers.running()});
    on_point(curve.points.back());
    RETURN_IF_ERROR(saver.OnStep(StepOf(run.options, pulled.Version()), over));
    if (!over)
      RETURN_IF_ERROR(trainers.Begin(pushes - shard.slowest, Wait::kForOne));
  }
  RETURN_IF_ERROR(trainers.Conclude(curve));
  return curve;
}

absl::StatusOr<PushFigures> MeasurePushes(rpc::Agent& agent, const Crew& crew,
                                          dist::ServerOptions options,
                                          const std::string& gradients,
                                          int64_t pushes) {
  ASSIGN_OR_RETURN(const Values values, GradientsLike(gradients));
  ASSIGN_OR_RETURN(
      const auto servers,
      dist::ParameterServers::Make(agent, crew.servers, options, values));
  std::vector<Future<RRef<GradientPusher>>> making;
  int64_t rank = 0;
  for (const std::string& worker : crew.trainers) {
    making.push_back(rpc::Create<GradientPusher>(agent, worker,
                                                 servers->directory(), rank++));
  }
  ASSIGN_OR_RETURN(const auto trainers, WaitAll(making).Await(kNoLimit));
  int64_t bytes = 0;
  for (const auto& [name, value] : values)
    bytes += static_cast<int64_t>(value.nbytes());
  ASSIGN_OR_RETURN(PushFigures figures,
                   MeasurePushers(trainers, pushes, bytes));
  ASSIGN_OR_RETURN(figures.pushes_alone_per_s,
                   RateOf<&GradientPusher::Push>(trainers, pushes));
  ASSIGN_OR_RETURN(figures.pulls_alone_per_s,
                   RateOf<&GradientPusher::Pull>(trainers, pushes));
  return figures;
}

}  // namespace baton::examples
