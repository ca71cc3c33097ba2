// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server/experiment.h"

#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
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

// Whatever the trainers give, of each.
template <typename Trainer, auto kMethod, typename... Setup>
absl::StatusOr<Future<std::vector<double>>> StartAll(
    rpc::Agent& agent, const Crew& crew, int64_t pushes,
    std::vector<RRef<Trainer>>& trainers, const Setup&... setup) {
  std::vector<Future<RRef<Trainer>>> making;
  int64_t rank = 0;
  for (const std::string& worker : crew.trainers)
    making.push_back(rpc::Create<Trainer>(agent, worker, setup..., rank++));
  ASSIGN_OR_RETURN(trainers, WaitAll(making).Await(kNoLimit));
  std::vector<Future<double>> running;
  for (const auto& trainer : trainers) {
    running.push_back(trainer.template Async<kMethod>(
        rpc::CallOptions{.timeout = kNoLimit}, pushes));
  }
  return WaitAll(running);
}

}  // namespace

absl::StatusOr<AccuracyCurve> TrainLeNet(
    rpc::Agent& agent, const Crew& crew, const AccuracyRun& run,
    const std::function<void(const AccuracyPoint&)>& on_point) {
  ASSIGN_OR_RETURN(const SplitDigits digits, LoadDigits(run.task.data));
  Generator generator(run.task.seed);
  models::LeNet model(generator);
  ASSIGN_OR_RETURN(const auto servers,
                   dist::ParameterServers::Make(
                       agent, crew.servers, run.options, NamedValues(model)));
  ASSIGN_OR_RETURN(
      const auto reader,
      dist::ServerClient::Join(agent, servers->directory(), std::nullopt));
  std::vector<RRef<LeNetTrainer>> trainers;
  ASSIGN_OR_RETURN(
      const Future<std::vector<double>> losses,
      (StartAll<LeNetTrainer, &LeNetTrainer::Train>(
          agent, crew, run.pushes, trainers, run.task, servers->directory())));
  AccuracyCurve curve;
  const auto begin = Clock::now();
  for (bool over = false; !over;) {
    const auto ended = losses.Await(run.report_every);
    over = losses.ready();
    if (over && !ended.ok()) return losses.Await().status();
    ASSIGN_OR_RETURN(const dist::Pulled pulled, reader->Pull().Await(kNoLimit));
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    pulled.CopyTo(TensorsOf(model));
    curve.points.push_back({.seconds = seconds.count(),
                            .version = pulled.shards.front().version,
                            .accuracy = Accuracy(model, digits.held_out)});
    on_point(curve.points.back());
  }
  ASSIGN_OR_RETURN(const std::vector<double> last, losses.Await());
  curve.loss = std::accumulate(last.begin(), last.end(), 0.0) /
               static_cast<double>(last.size());
  return curve;
}

absl::StatusOr<double> PushRate(rpc::Agent& agent, const Crew& crew,
                                dist::ServerOptions options,
                                const std::string& gradients, int64_t pushes) {
  ASSIGN_OR_RETURN(const Values values, GradientsLike(gradients));
  ASSIGN_OR_RETURN(
      const auto servers,
      dist::ParameterServers::Make(agent, crew.servers, options, values));
  std::vector<RRef<GradientPusher>> trainers;
  ASSIGN_OR_RETURN(const Future<std::vector<double>> rates,
                   (StartAll<GradientPusher, &GradientPusher::Run>(
                       agent, crew, pushes, trainers, servers->directory())));
  ASSIGN_OR_RETURN(const std::vector<double> all, rates.Await(kNoLimit));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace baton::examples
