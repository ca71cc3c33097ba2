// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a ResNet data-parallel with a copy at every worker:
//   baton-run --workers=2 --cores_per_worker=1 --worker_program=resnet50_ddp --
//       resnet50_ddp --depth=18 --batch=16 --variants=single,ddp
//   baton-run --workers=2 --device=cuda --dtype=tf32
//       --worker_program=resnet50_ddp --
//       resnet50_ddp --batch=60 --variants=single,ddp
// Or makes each copy a pipeline of two workers:
//   baton-run --workers=4 --worker_program=resnet50_ddp --
//       resnet50_ddp --pipeline_stages=2 --variants=single,ddp

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/data_parallel/pipelined_replicas.h"
#include "examples/data_parallel/replica.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/progress.h"
#include "examples/support/trace_flag.h"
#include "examples/support/training_log.h"
#include "examples/support/unused_flags.h"
#include "rpc/spares.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"
#include "tools/output_file.h"
#include "tools/view/cluster_trace.h"

ABSL_FLAG(int, depth, 50, "of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int64_t, width, 64, "channels after the stem");
ABSL_FLAG(int64_t, classes, 1000, "of random images");
ABSL_FLAG(int64_t, batch, 32, "images of a step at each worker");
ABSL_FLAG(int64_t, image, 128, "height and width of random images");
ABSL_FLAG(std::string, data, "",
          "images to train on, as a folder of classes or CIFAR-10's files, a "
          "share at each worker; default random ones, drawn once");
ABSL_FLAG(
    int64_t, steps, 10,
    "calls of the trainer that are timed, each of --steps_per_call steps");
ABSL_FLAG(int64_t, warm_up, 2, "calls before those that are timed");
ABSL_FLAG(int64_t, steps_per_call, 0,
          "steps that a worker takes before it answers; 0: one on CPUs, 20 on "
          "GPUs, which then never wait for the trainer");
ABSL_FLAG(bool, record, true,
          "on GPUs a step is recorded, and replayed as one graph");
ABSL_FLAG(int64_t, bucket_mb, 25, "MB of gradients that are reduced as one");
ABSL_FLAG(
    std::vector<std::string>, variants, {"ddp"},
    "what to measure, one after the other: single (the first worker alone), "
    "ddp (all workers), zero (ddp with the optimizer's state divided), "
    "periodic "
    "and gossip (each worker steps by its own gradients, and the models of all "
    "or of pairs are averaged)");
ABSL_FLAG(int64_t, average_every, 4,
          "of periodic and gossip: steps between two averages");
ABSL_FLAG(std::string, gradients, "fp32",
          "how they travel: fp32, or bf16, which halves the bytes");
ABSL_FLAG(int, power_sgd_rank, 0,
          "of ddp: gradients travel as the product of two matrices of so many "
          "columns, which PowerSGD finds; 0: as they are");
ABSL_FLAG(bool, sync_batch_norm, false,
          "batch norms take the batches of all workers as one");
ABSL_FLAG(int, pipeline_stages, 1,
          "of single and ddp: workers that share a copy of the model, as a "
          "pipeline of so many stages, 1 to 4; --batch and single then are of "
          "a pipeline");
ABSL_FLAG(int64_t, split_size, 0,
          "with --pipeline_stages, images of a micro-batch; 0: a quarter of a "
          "batch");
ABSL_FLAG(uint64_t, seed, 0, "of weights and images");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a ResNet of which every worker has a copy, each on its own "
    "images.\n"
    "Default: --optimizer=sgd --lr=0.01 --momentum=0.9.";

// More than enough time for all members of a group to meet.
constexpr std::chrono::minutes kStep{10};

bool IsAveraged(const std::string& variant) {
  return variant == "periodic" || variant == "gossip";
}

int Stages() { return absl::GetFlag(FLAGS_pipeline_stages); }

// Refuses a flag if none of the variants that read it is measured.
absl::Status CheckRead(const std::string& flag,
                       const std::vector<std::string>& readers) {
  if (IsDefault(flag)) return absl::OkStatus();
  for (const std::string& variant : absl::GetFlag(FLAGS_variants))
    for (const std::string& reader : readers)
      if (variant == reader) return absl::OkStatus();
  return tools::WrongFlag(
      flag, "goes with --variants=" + absl::StrJoin(readers, " or "));
}

// Checks the flags for pipelines.
absl::Status CheckPipelines() {
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_pipeline_stages));
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_split_size));
  if (Stages() == 1) {
    if (absl::GetFlag(FLAGS_split_size) == 0) return absl::OkStatus();
    return tools::WrongFlag("split_size", "goes with --pipeline_stages");
  }
  if (Stages() > 4) return tools::WrongFlag("pipeline_stages", "takes 1 to 4");
  if (absl::GetFlag(FLAGS_split_size) > absl::GetFlag(FLAGS_batch))
    return tools::WrongFlag("split_size", "is at most --batch");
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    if (variant != "single" && variant != "ddp")
      return tools::WrongFlag("pipeline_stages", "must be 1 for " + variant);
  }
  return CheckUnused({"data", "steps_per_call", "bucket_mb", "gradients",
                      "power_sgd_rank", "sync_batch_norm"},
                     "pipeline_stages");
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_width, FLAGS_classes, FLAGS_batch,
                                 FLAGS_image, FLAGS_steps, FLAGS_bucket_mb,
                                 FLAGS_average_every));
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_steps_per_call, FLAGS_warm_up,
                                 FLAGS_power_sgd_rank));
  const std::string gradients = absl::GetFlag(FLAGS_gradients);
  RETURN_IF_ERROR(tools::CheckWord("--gradients", gradients, {"fp32", "bf16"}));
  const int columns = absl::GetFlag(FLAGS_power_sgd_rank);
  if (columns > 0 && gradients != "fp32")
    return tools::WrongFlag("gradients", "must be fp32 with --power_sgd_rank");
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    RETURN_IF_ERROR(
        tools::CheckWord("--variants", variant,
                         {"single", "ddp", "zero", "periodic", "gossip"}));
    if (variant != "single" && variant != "ddp" && gradients != "fp32")
      return tools::WrongFlag("gradients", "must be fp32 for " + variant);
    if (variant == "zero" && columns > 0)
      return tools::WrongFlag("power_sgd_rank", "must be 0 for " + variant);
  }
  RETURN_IF_ERROR(CheckRead("average_every", {"periodic", "gossip"}));
  RETURN_IF_ERROR(CheckRead("bucket_mb", {"ddp", "zero"}));
  RETURN_IF_ERROR(CheckRead("gradients", {"ddp"}));
  RETURN_IF_ERROR(CheckRead("power_sgd_rank", {"ddp"}));
  RETURN_IF_ERROR(tools::CheckOutputs(FLAGS_trace));
  return CheckPipelines();
}

absl::StatusOr<ReplicaTask> TaskFromFlags() {
  ReplicaTask task;
  task.model.depth = absl::GetFlag(FLAGS_depth);
  task.model.width = absl::GetFlag(FLAGS_width);
  task.model.num_classes = absl::GetFlag(FLAGS_classes);
  task.model.seed = absl::GetFlag(FLAGS_seed);
  ASSIGN_OR_RETURN(
      task.optimizer,
      OptimizerFromFlags(
          {.kind = "sgd", .lr = 0.01, .others = {{"momentum", 0.9}}}));
  task.data = absl::GetFlag(FLAGS_data);
  task.batch = absl::GetFlag(FLAGS_batch);
  task.image = absl::GetFlag(FLAGS_image);
  task.half = absl::GetFlag(FLAGS_gradients) == "bf16";
  task.bucket = absl::GetFlag(FLAGS_bucket_mb) << 20;
  task.power_sgd_rank = absl::GetFlag(FLAGS_power_sgd_rank);
  task.together = absl::GetFlag(FLAGS_sync_batch_norm);
  task.graph = absl::GetFlag(FLAGS_record);
  task.seed = absl::GetFlag(FLAGS_seed);
  return task;
}

using Workers = std::vector<rpc::WorkerInfo>;

absl::StatusOr<Workers> MembersOf(const rpc::Agent& agent,
                                  const std::string& variant) {
  Workers members = rpc::OthersButSpares(agent);
  if (members.empty()) {
    return absl::UnavailableError(
        "no worker is there to train: give baton-run --workers=2");
  }
  if (variant == "single")
    members.resize(std::min(members.size(), static_cast<size_t>(Stages())));
  return members;
}

int64_t StepsPerCall(const Workers& members) {
  const int64_t steps = absl::GetFlag(FLAGS_steps_per_call);
  if (steps > 0) return steps;
  return members.front().compute.device.is_cuda() ? 20 : 1;
}

template <typename T>
absl::StatusOr<std::vector<T>> AwaitEach(const std::vector<Future<T>>& calls) {
  return WaitAll(calls).Await(kStep);
}

// Takes `count` steps at all replicas; returns the mean losses and the slowest
// one's times.
absl::StatusOr<ReplicaSteps> StepAll(const std::vector<RRef<Replica>>& replicas,
                                     int64_t count) {
  std::vector<Future<ReplicaSteps>> calls;
  for (const auto& replica : replicas) {
    calls.push_back(replica.Async<&Replica::Step>(
        rpc::CallOptions{.timeout = kStep}, count));
  }
  ASSIGN_OR_RETURN(std::vector<ReplicaSteps> all, AwaitEach(calls));
  std::vector<double> losses(static_cast<size_t>(count));
  size_t slowest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].seconds > all[slowest].seconds) slowest = i;
    for (size_t step = 0; step < losses.size(); ++step)
      losses[step] += all[i].losses[step] / static_cast<double>(all.size());
  }
  all[slowest].losses = std::move(losses);
  return all[slowest];
}

absl::StatusOr<ReplicaSteps> StepAllTraced(
    rpc::Agent& agent, const std::vector<RRef<Replica>>& replicas,
    int64_t count, const std::string& path) {
  ReplicaSteps steps;
  RETURN_IF_ERROR(tools::WriteTraceOf(agent, path, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(steps, StepAll(replicas, count));
    return absl::OkStatus();
  }));
  return steps;
}

// Returns the sum of each replica's parameters; an error if they differ.
absl::StatusOr<std::vector<double>> ParameterSums(
    const std::vector<RRef<Replica>>& replicas) {
  std::vector<Future<double>> calls;
  for (const auto& replica : replicas)
    calls.push_back(replica.Async<&Replica::Checksum>());
  ASSIGN_OR_RETURN(std::vector<double> sums, AwaitEach(calls));
  for (const double sum : sums) {
    if (sum != sums.front())
      return absl::InternalError("the replicas' parameters are not the same");
  }
  return sums;
}

absl::StatusOr<std::vector<RRef<Replica>>> MakeReplicas(
    rpc::Agent& agent, const ReplicaTask& task) {
  std::vector<Future<RRef<Replica>>> made;
  for (const std::string& member : task.members)
    made.push_back(rpc::Create<Replica>(agent, member, task));
  return AwaitEach(made);
}

std::vector<Detail> CircumstancesOf(const ReplicaTask& task,
                                    const Workers& members) {
  return {{"workers", static_cast<int64_t>(task.members.size())},
          {"compute", members.front().compute.ToString()},
          {"batch", task.batch},
          {"depth", static_cast<int64_t>(task.model.depth)},
          {"gradients", absl::GetFlag(FLAGS_gradients)}};
}

std::vector<Detail> DetailsOf(const ReplicaTask& task, const Workers& members,
                              const std::vector<ReplicaSteps>& timed,
                              const std::vector<double>& losses,
                              const std::vector<double>& sums) {
  double waited = 0, seconds = 0;
  for (const ReplicaSteps& steps : timed) {
    waited += steps.waited_s;
    seconds += steps.seconds;
  }
  std::vector<Detail> details = CircumstancesOf(task, members);
  for (Detail& detail :
       std::vector<Detail>{{"gradient_bytes", timed.back().bytes},
                           {"state_bytes", timed.back().state_bytes},
                           {"kernels", timed.back().kernels},
                           {"waited_share", waited / seconds},
                           {"losses", losses},
                           {"parameter_sums", sums}}) {
    details.push_back(std::move(detail));
  }
  return details;
}

absl::StatusOr<Measurement> TrainOverPipelines(rpc::Agent& agent,
                                               const std::string& variant,
                                               const ReplicaTask& task,
                                               const Workers& members) {
  ASSIGN_OR_RETURN(
      Measurement measured,
      TrainPipelines(agent, variant, task,
                     {.stages = Stages(),
                      .split_size = absl::GetFlag(FLAGS_split_size),
                      .warm_up = absl::GetFlag(FLAGS_warm_up),
                      .steps = absl::GetFlag(FLAGS_steps),
                      .trace = absl::GetFlag(FLAGS_trace)}));
  for (Detail& detail : CircumstancesOf(task, members))
    measured.details.push_back(std::move(detail));
  measured.details.push_back(
      {"pipeline_stages", static_cast<int64_t>(Stages())});
  return measured;
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent,
                                  const std::string& variant) {
  ASSIGN_OR_RETURN(ReplicaTask task, TaskFromFlags());
  ASSIGN_OR_RETURN(const Workers members, MembersOf(agent, variant));
  for (const auto& member : members) task.members.push_back(member.name);
  if (Stages() > 1) return TrainOverPipelines(agent, variant, task, members);
  task.shard = variant == "zero";
  task.gossip = variant == "gossip";
  if (IsAveraged(variant))
    task.average_every = absl::GetFlag(FLAGS_average_every);
  ASSIGN_OR_RETURN(const auto replicas, MakeReplicas(agent, task));
  const std::string trace = absl::GetFlag(FLAGS_trace);
  // The last call before the timed ones is traced.
  const int64_t warm_up =
      absl::GetFlag(FLAGS_warm_up) + (trace.empty() ? 0 : 1);
  const int64_t calls = warm_up + absl::GetFlag(FLAGS_steps);
  const int64_t count = StepsPerCall(members);
  const auto images = static_cast<int64_t>(replicas.size()) * task.batch;
  std::vector<double> losses;
  std::vector<ReplicaSteps> timed;
  {
    Progress progress(variant, "images", calls);
    TrainingLog log(variant, "images", task.optimizer.lr);
    for (int64_t i = 0; i < calls; ++i) {
      const bool traced = !trace.empty() && i + 1 == warm_up;
      ASSIGN_OR_RETURN(const ReplicaSteps steps,
                       traced ? StepAllTraced(agent, replicas, count, trace)
                              : StepAll(replicas, count));
      progress.Step(steps.losses.back(), images * count);
      log.Add((i + 1) * count, images * count, {{"loss", steps.losses.back()}});
      losses.insert(losses.end(), steps.losses.begin(), steps.losses.end());
      if (i >= warm_up) timed.push_back(steps);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<double> sums, ParameterSums(replicas));
  std::vector<double> seconds;
  for (const ReplicaSteps& steps : timed) seconds.push_back(steps.seconds);
  return Measurement{.variant = variant,
                     .items = images,
                     .seconds = seconds,
                     .loss = losses.back(),
                     .details = DetailsOf(task, members, timed, losses, sums)};
}

absl::Status Run(rpc::Agent& agent) {
  Findings findings;
  for (const std::string& variant : absl::GetFlag(FLAGS_variants)) {
    ASSIGN_OR_RETURN(Measurement measured, Train(agent, variant));
    findings.measurements.push_back(std::move(measured));
  }
  findings.further = NoteEfficiency(findings.measurements) +
                     FormatShares(findings.measurements, "waited_share",
                                  "waits for gradients of others") +
                     FormatBubbles(findings.measurements);
  findings.charts = {
      {"loss", LossChart("Data parallel", findings.measurements)}};
  return Tell(findings);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain<baton::examples::Replica>(
      argc, argv,
      {.workers = 2,
       .arguments = "[FLAGS]",
       .about = baton::examples::kAbout,
       .train = baton::examples::Run,
       .check = baton::examples::CheckFlags});
}
