// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A ResNet that every worker has a copy of, trained data-parallel:
//   baton-run --workers=2 --cores_per_worker=1 --worker_program=resnet50_ddp --
//       resnet50_ddp --depth=18 --batch=16 --variants=single,ddp

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "examples/data_parallel/replica.h"
#include "examples/support/charts.h"
#include "examples/support/cluster_program.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/progress.h"
#include "tools/command_line.h"

ABSL_FLAG(int, depth, 50, "of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int64_t, width, 64, "channels after the stem");
ABSL_FLAG(int64_t, classes, 1000, "of random images");
ABSL_FLAG(int64_t, batch, 32, "images of a step at each worker");
ABSL_FLAG(int64_t, image, 128, "height and width of random images");
ABSL_FLAG(std::string, data, "",
          "images to train on, as a folder of classes or CIFAR-10's files, a "
          "share at each worker; default random ones, drawn once");
ABSL_FLAG(int64_t, steps, 10, "that are timed");
ABSL_FLAG(int64_t, warm_up, 2, "steps before these");
ABSL_FLAG(
    std::vector<std::string>, variants, {"ddp"},
    "single, the first worker alone, ddp, all of them, and zero, the same "
    "with the optimizer's state divided, one after the other");
ABSL_FLAG(std::string, gradients, "fp32",
          "how they travel: fp32, or bf16, which halves the bytes");
ABSL_FLAG(uint64_t, seed, 0, "of weights and images");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: baton-run --workers=2 --worker_program=resnet50_ddp --\n"
    "           resnet50_ddp [FLAGS]\n"
    "Trains a ResNet of which every worker has a copy, each on its own images.";

// The last member of a group meets the first ones well within this.
constexpr std::chrono::minutes kStep{10};

struct Outcome {
  Measurement measurement;
  std::vector<double> losses;  // the mean over the replicas, of each step
};

absl::Status CheckFlags() {
  for (const auto* flag : {&FLAGS_width, &FLAGS_classes, &FLAGS_batch,
                           &FLAGS_image, &FLAGS_steps}) {
    if (absl::GetFlag(*flag) < 1) {
      return absl::InvalidArgumentError(
          "--width, --classes, --batch, --image and --steps are 1 or more");
    }
  }
  if (absl::GetFlag(FLAGS_warm_up) < 0)
    return tools::WrongFlag("warm_up", "is 0 or more");
  const std::string gradients = absl::GetFlag(FLAGS_gradients);
  if (gradients != "fp32" && gradients != "bf16")
    return tools::WrongFlag("gradients", "is fp32 or bf16");
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    if (variant != "single" && variant != "ddp" && variant != "zero")
      return tools::WrongFlag("variants", "is a list of single, ddp and zero");
    if (variant == "zero" && gradients != "fp32")
      return tools::WrongFlag("gradients", "is fp32 for zero");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplicaTask> TaskFromFlags() {
  ReplicaTask task;
  task.model.depth = absl::GetFlag(FLAGS_depth);
  task.model.width = absl::GetFlag(FLAGS_width);
  task.model.num_classes = absl::GetFlag(FLAGS_classes);
  task.model.seed = absl::GetFlag(FLAGS_seed);
  ASSIGN_OR_RETURN(
      const Stepping stepping,
      SteppingFromFlags(
          {.optimizer = {
               .kind = "sgd", .lr = 0.01, .others = {{"momentum", 0.9}}}}));
  if (stepping.schedule != "constant")
    return tools::WrongFlag("lr_schedule", "is constant here");
  task.optimizer = stepping.optimizer;
  task.data = absl::GetFlag(FLAGS_data);
  task.batch = absl::GetFlag(FLAGS_batch);
  task.image = absl::GetFlag(FLAGS_image);
  task.half = absl::GetFlag(FLAGS_gradients) == "bf16";
  task.seed = absl::GetFlag(FLAGS_seed);
  return task;
}

absl::StatusOr<std::vector<std::string>> MembersOf(const rpc::Agent& agent,
                                                   const std::string& variant) {
  std::vector<std::string> members;
  for (const rpc::WorkerInfo& worker : agent.workers())
    if (worker.name != agent.self().name) members.push_back(worker.name);
  if (members.empty()) {
    return absl::UnavailableError(
        "no worker is there to train: give baton-run --workers=2");
  }
  if (variant == "single") members.resize(1);
  return members;
}

template <typename T>
absl::StatusOr<std::vector<T>> AwaitEach(const std::vector<Future<T>>& calls) {
  return WaitAll(calls).Await(kStep);
}

// One step of all, and the slowest one's times.
absl::StatusOr<ReplicaStep> StepAll(
    const std::vector<RRef<Replica>>& replicas) {
  std::vector<Future<ReplicaStep>> calls;
  for (const auto& replica : replicas)
    calls.push_back(
        replica.Async<&Replica::Step>(rpc::CallOptions{.timeout = kStep}));
  ASSIGN_OR_RETURN(const std::vector<ReplicaStep> steps, AwaitEach(calls));
  ReplicaStep all;
  for (const ReplicaStep& step : steps) {
    all.loss += step.loss / static_cast<double>(steps.size());
    if (step.seconds < all.seconds) continue;
    all.seconds = step.seconds;
    all.waited_s = step.waited_s;
    all.bytes = step.bytes;
    all.state_bytes = step.state_bytes;
  }
  return all;
}

absl::Status CheckEqual(const std::vector<RRef<Replica>>& replicas) {
  std::vector<Future<double>> calls;
  for (const auto& replica : replicas)
    calls.push_back(replica.Async<&Replica::Checksum>());
  ASSIGN_OR_RETURN(const std::vector<double> sums, AwaitEach(calls));
  for (const double sum : sums) {
    if (sum != sums.front())
      return absl::InternalError("the replicas' parameters are not the same");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RRef<Replica>>> MakeReplicas(
    rpc::Agent& agent, const ReplicaTask& task) {
  std::vector<Future<RRef<Replica>>> made;
  for (const std::string& member : task.members)
    made.push_back(rpc::Create<Replica>(agent, member, task));
  return AwaitEach(made);
}

std::vector<Detail> DetailsOf(const ReplicaTask& task,
                              const std::vector<ReplicaStep>& timed,
                              const std::vector<double>& losses) {
  double waited = 0, seconds = 0;
  for (const ReplicaStep& step : timed) {
    waited += step.waited_s;
    seconds += step.seconds;
  }
  return {{"workers", static_cast<int64_t>(task.members.size())},
          {"batch", task.batch},
          {"depth", static_cast<int64_t>(task.model.depth)},
          {"gradients", absl::GetFlag(FLAGS_gradients)},
          {"gradient_bytes", timed.back().bytes},
          {"state_bytes", timed.back().state_bytes},
          {"waited_share", waited / seconds},
          {"losses", losses}};
}

absl::StatusOr<Outcome> Train(rpc::Agent& agent, const std::string& variant) {
  ASSIGN_OR_RETURN(ReplicaTask task, TaskFromFlags());
  ASSIGN_OR_RETURN(task.members, MembersOf(agent, variant));
  task.shard = variant == "zero";
  ASSIGN_OR_RETURN(const auto replicas, MakeReplicas(agent, task));
  const int64_t warm_up = absl::GetFlag(FLAGS_warm_up);
  const int64_t steps = warm_up + absl::GetFlag(FLAGS_steps);
  const auto images = static_cast<int64_t>(replicas.size()) * task.batch;
  Outcome outcome;
  std::vector<ReplicaStep> timed;
  {
    Progress progress(variant, "images", steps);
    for (int64_t i = 0; i < steps; ++i) {
      ASSIGN_OR_RETURN(const ReplicaStep step, StepAll(replicas));
      progress.Step(step.loss, images);
      outcome.losses.push_back(step.loss);
      if (i >= warm_up) timed.push_back(step);
    }
  }
  RETURN_IF_ERROR(CheckEqual(replicas));
  Measurement& measurement = outcome.measurement;
  measurement.variant = variant;
  measurement.items = images;
  for (const ReplicaStep& step : timed)
    measurement.seconds.push_back(step.seconds);
  measurement.loss = outcome.losses.back();
  measurement.details = DetailsOf(task, timed, outcome.losses);
  return outcome;
}

// Of what as many workers would do that had nothing to tell each other.
std::string Efficiency(const std::vector<Outcome>& outcomes) {
  const Outcome *single = nullptr, *all = nullptr;
  for (const Outcome& outcome : outcomes) {
    if (outcome.measurement.variant == "single") single = &outcome;
    if (outcome.measurement.variant == "ddp") all = &outcome;
  }
  if (single == nullptr || all == nullptr) return "";
  return absl::StrFormat("scaling efficiency: %.3f\n",
                         Summarize(single->measurement).median_s /
                             Summarize(all->measurement).median_s);
}

std::string LossChart(const std::vector<Outcome>& outcomes) {
  std::vector<Curve> curves;
  for (const Outcome& outcome : outcomes) {
    Curve& curve = curves.emplace_back(Curve{outcome.measurement.variant});
    for (const double loss : outcome.losses) {
      curve.x.push_back(static_cast<double>(curve.x.size() + 1));
      curve.y.push_back(loss);
    }
  }
  return CurvesChart("losses", "Data parallel", "step", "loss", curves);
}

absl::Status Run(rpc::Agent& agent) {
  std::vector<Outcome> outcomes;
  Findings findings;
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    ASSIGN_OR_RETURN(Outcome outcome, Train(agent, variant));
    findings.measurements.push_back(outcome.measurement);
    outcomes.push_back(std::move(outcome));
  }
  findings.further = Efficiency(outcomes);
  findings.charts = {{"losses", LossChart(outcomes)}};
  return Tell(findings);
}

absl::Status Main() {
  rpc::Registry registry;
  RegisterReplicas(registry);
  return RunInCluster(std::move(registry), CheckFlags, Run);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::examples::Main());
}
