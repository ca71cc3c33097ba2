// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server/experiment.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
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

// Whatever the trainers give, of each that is not lost meanwhile.
using OfTrainers = std::vector<std::optional<double>>;
template <typename Trainer, auto kMethod, typename... Setup>
absl::StatusOr<Future<OfTrainers>> StartAll(
    rpc::Agent& agent, const Crew& crew, int64_t pushes,
    std::vector<RRef<Trainer>>& trainers, const Setup&... setup) {
  std::vector<Future<RRef<Trainer>>> making;
  int64_t rank = 0;
  for (const std::string& worker : crew.trainers)
    making.push_back(rpc::Create<Trainer>(agent, worker, setup..., rank++));
  ASSIGN_OR_RETURN(trainers, WaitAll(making).Await(kNoLimit));
  std::vector<Future<std::optional<double>>> running;
  for (const auto& trainer : trainers) {
    running.push_back(UnlessLost<double>(trainer.template Async<kMethod>(
        rpc::CallOptions{.timeout = kNoLimit}, pushes)));
  }
  return WaitAll(running);
}

absl::StatusOr<std::vector<double>> ThoseThere(const OfTrainers& all) {
  std::vector<double> there;
  for (const std::optional<double>& of_one : all)
    if (of_one.has_value()) there.push_back(*of_one);
  if (!there.empty()) return there;
  return absl::UnavailableError("all trainers were lost");
}

// The median of some copies into memory that is there.
double MemcpyBytesPerSecond(size_t bytes) {
  constexpr size_t kTimes = 9;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> seconds;
  while (seconds.size() < kTimes) {
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
    BATON_CHECK(to == from);  // so that all of it is done
  }
  std::nth_element(seconds.begin(), seconds.begin() + kTimes / 2,
                   seconds.end());
  return static_cast<double>(bytes) / seconds[kTimes / 2];
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
      const Future<OfTrainers> losses,
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
  ASSIGN_OR_RETURN(const OfTrainers all, losses.Await());
  ASSIGN_OR_RETURN(const std::vector<double> last, ThoseThere(all));
  curve.lost = static_cast<int64_t>(all.size() - last.size());
  curve.loss = std::accumulate(last.begin(), last.end(), 0.0) /
               static_cast<double>(last.size());
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
  std::vector<RRef<GradientPusher>> trainers;
  ASSIGN_OR_RETURN(const Future<OfTrainers> rates,
                   (StartAll<GradientPusher, &GradientPusher::Run>(
                       agent, crew, pushes, trainers, servers->directory())));
  ASSIGN_OR_RETURN(const OfTrainers given, rates.Await(kNoLimit));
  ASSIGN_OR_RETURN(const std::vector<double> all, ThoseThere(given));
  PushFigures figures{.pushes_per_s =
                          std::accumulate(all.begin(), all.end(), 0.0)};
  for (const auto& [name, value] : values)
    figures.bytes += static_cast<int64_t>(value.nbytes());
  figures.memcpy_bytes_per_s =
      MemcpyBytesPerSecond(static_cast<size_t>(figures.bytes));
  return figures;
}

}  // namespace baton::examples
