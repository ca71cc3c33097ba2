// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a LeNet data-parallel by hand: batches are split and scattered, and
// gradients all-reduced, with nothing but Send and Receive.
//   baton-run --workers=2 --worker_program=lenet_data_parallel --
//       lenet_data_parallel --data=t10k-images-idx3-ubyte.gz

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/status.h"
#include "examples/data_parallel/lenet_device.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/number_flags.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/participants.h"
#include "examples/support/trace_flag.h"
#include "examples/support/training_log.h"
#include "rpc/spares.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"
#include "tools/output_file.h"
#include "tools/view/cluster_trace.h"

ABSL_FLAG(std::string, data, "",
          "images of 28x28 with their labels, as MNIST's IDX files are; every "
          "tenth one is held out");
ABSL_FLAG(std::vector<std::string>, variants,
          (std::vector<std::string>{"1", "2", "2x"}),
          "with how many devices to train, one after the other; with an x "
          "batch and rate are so many times as large");
ABSL_FLAG(int64_t, epochs, 5, "of each variant");
ABSL_FLAG(int64_t, batch, 64, "of all devices together");
ABSL_FLAG(std::string, all_reduce, "ring",
          "how gradients are summed: star, tree, ring or library");
ABSL_FLAG(std::vector<std::string>, time_bytes,
          (std::vector<std::string>{"8", "1048576", "67108864"}),
          "time all ways to sum f32 tensors of so many bytes at all devices; "
          "empty: none");
ABSL_FLAG(int64_t, repeats, 9, "timings of each way to sum");
ABSL_FLAG(uint64_t, seed, 1, "of weights and order of the images");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Trains a LeNet data-parallel by hand, and times ways to all-reduce.\n"
    "Default: --optimizer=sgd --lr=0.1.";

constexpr std::chrono::minutes kEpoch{30};
constexpr const char* kWays[] = {"star", "tree", "ring", "library"};

struct Variant {
  std::string name;
  size_t devices = 1;
  bool larger = false;  // batch and learning rate grow with the devices
};

using Devices = std::vector<RRef<LeNetDevice>>;

absl::StatusOr<std::vector<Variant>> Variants() {
  std::vector<Variant> variants;
  for (const std::string& name : absl::GetFlag(FLAGS_variants)) {
    Variant variant{.name = name};
    absl::string_view number = name;
    variant.larger = absl::ConsumeSuffix(&number, "x");
    if (!absl::SimpleAtoi(number, &variant.devices) || variant.devices < 1)
      return tools::WrongFlag(
          "variants", absl::StrCat("takes a list as 1,2,2x, not '", name, "'"));
    variants.push_back(variant);
  }
  if (variants.empty()) return tools::WrongFlag("variants", "names none");
  return variants;
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  if (absl::GetFlag(FLAGS_data).empty())
    return tools::WrongFlag("data", "is missing: give the images");
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_epochs, FLAGS_batch, FLAGS_repeats));
  RETURN_IF_ERROR(NumbersOf(FLAGS_time_bytes, 4).status());
  RETURN_IF_ERROR(tools::CheckWord("--all_reduce",
                                   absl::GetFlag(FLAGS_all_reduce),
                                   {std::begin(kWays), std::end(kWays)}));
  RETURN_IF_ERROR(tools::CheckOutputs(FLAGS_trace));
  return Variants().status();
}

absl::StatusOr<LeNetDevicesTask> TaskOf(const rpc::Agent& agent,
                                        const Variant& variant) {
  LeNetDevicesTask task;
  for (const rpc::WorkerInfo& worker : rpc::OthersButSpares(agent))
    task.members.push_back(worker.name);
  if (task.members.size() < variant.devices) {
    return absl::UnavailableError(absl::StrCat(
        variant.devices, " devices to train, but ", task.members.size(),
        " workers: give baton-run --workers=", variant.devices));
  }
  task.members.resize(variant.devices);
  const auto times = static_cast<int64_t>(variant.larger ? variant.devices : 1);
  task.data = absl::GetFlag(FLAGS_data);
  task.batch = absl::GetFlag(FLAGS_batch) * times;
  ASSIGN_OR_RETURN(task.optimizer,
                   OptimizerFromFlags({.kind = "sgd", .lr = 0.1}));
  task.optimizer.lr *= static_cast<double>(times);
  task.all_reduce = absl::GetFlag(FLAGS_all_reduce);
  task.seed = absl::GetFlag(FLAGS_seed);
  return task;
}

// Makes the same call at all devices and returns all results.
template <auto kMethod, typename... Args>
auto OfAll(const Devices& devices, const Args&... args) {
  std::vector<decltype(devices[0].template Async<kMethod>(
      rpc::CallOptions{.timeout = kEpoch}, args...))>
      calls;
  for (const auto& device : devices) {
    calls.push_back(device.template Async<kMethod>(
        rpc::CallOptions{.timeout = kEpoch}, args...));
  }
  return WaitAll(calls).Await(kEpoch);
}

absl::StatusOr<LeNetEpoch> TrainEpoch(const Devices& devices) {
  ASSIGN_OR_RETURN(const std::vector<LeNetEpoch> epochs,
                   OfAll<&LeNetDevice::TrainEpoch>(devices));
  for (const LeNetEpoch& epoch : epochs) {
    if (epoch.checksum != epochs.front().checksum)
      return absl::InternalError("the devices' parameters are not the same");
  }
  return epochs.front();
}

absl::StatusOr<double> Accuracy(const Devices& devices) {
  ASSIGN_OR_RETURN(const std::vector<double> accuracies,
                   OfAll<&LeNetDevice::Accuracy>(devices));
  return accuracies.front();
}

// Returns a table with a row for each size; adds the same to the details.
absl::StatusOr<std::string> TimeAllReduces(const rpc::Agent& agent,
                                           const Devices& devices,
                                           std::vector<Detail>& details) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                   NumbersOf(FLAGS_time_bytes, 4));
  if (sizes.empty()) return "";
  const bool gpus =
      rpc::OthersButSpares(agent).front().compute.device.is_cuda();
  std::string text = absl::StrFormat("%-22s", "all-reduce, ms");
  for (const std::string way : kWays) {
    const bool nccl = gpus && way == "library";
    absl::StrAppendFormat(&text, "  %9s", nccl ? "NCCL" : way);
  }
  text += "\n";
  for (const int64_t bytes : sizes) {
    absl::StrAppendFormat(&text, "%-22s", absl::StrCat(bytes, " bytes"));
    for (const std::string way : kWays) {
      ASSIGN_OR_RETURN(
          const std::vector<double> seconds,
          OfAll<&LeNetDevice::TimeAllReduce>(devices, bytes / 4, way,
                                             absl::GetFlag(FLAGS_repeats)));
      const double ms = *std::max_element(seconds.begin(), seconds.end()) * 1e3;
      absl::StrAppendFormat(&text, "  %9.3f", ms);
      details.push_back({absl::StrCat(way, "_", bytes, "_ms"), ms});
    }
    text += "\n";
  }
  return text;
}

absl::StatusOr<Devices> MakeDevices(rpc::Agent& agent,
                                    const LeNetDevicesTask& task) {
  std::vector<Future<RRef<LeNetDevice>>> made;
  for (const std::string& member : task.members)
    made.push_back(rpc::Create<LeNetDevice>(agent, member, task));
  return WaitAll(made).Await(kEpoch);
}

absl::StatusOr<Measurement> Train(rpc::Agent& agent, const Devices& devices,
                                  const LeNetDevicesTask& task,
                                  const std::string& variant, Curve& curve) {
  const std::string trace = absl::GetFlag(FLAGS_trace);
  Measurement measurement;
  measurement.variant = variant;
  std::vector<double> losses;
  TrainingLog log(variant, "images", task.optimizer.lr);
  double seconds = 0, reducing = 0;
  for (int64_t i = 0; i < absl::GetFlag(FLAGS_epochs); ++i) {
    LeNetEpoch epoch;
    const auto train = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(epoch, TrainEpoch(devices));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(i == 0 && !trace.empty()
                        ? tools::WriteTraceOf(agent, trace, train)
                        : train());
    ASSIGN_OR_RETURN(const double accuracy, Accuracy(devices));
    std::fprintf(stderr, "%s  epoch %lld  %5.1f s  loss %.4f  accuracy %.4f\n",
                 variant.c_str(), static_cast<long long>(i) + 1, epoch.seconds,
                 epoch.loss, accuracy);
    log.Add(i + 1, epoch.images,
            {{"loss", epoch.loss}, {"accuracy", accuracy}});
    seconds += epoch.seconds;
    reducing += epoch.reducing_s;
    losses.push_back(epoch.loss);
    curve.x.push_back(static_cast<double>(i + 1));
    curve.y.push_back(accuracy);
    measurement.seconds.push_back(epoch.seconds);
    measurement.items = epoch.images;
  }
  measurement.loss = losses.back();
  measurement.details = {{"devices", static_cast<int64_t>(devices.size())},
                         {"batch", task.batch},
                         {"optimizer", task.optimizer.kind},
                         {"lr", task.optimizer.lr},
                         {"all_reduce", task.all_reduce},
                         {"reducing_share", reducing / seconds},
                         {"accuracy", curve.y.back()},
                         {"accuracies", curve.y},
                         {"losses", losses}};
  return measurement;
}

absl::Status Run(rpc::Agent& agent) {
  RETURN_IF_ERROR(CheckCompute(agent, /*gpus=*/true));
  ASSIGN_OR_RETURN(const std::vector<Variant> variants, Variants());
  Findings findings;
  std::vector<Curve> curves;
  size_t most = 0;  // number of devices
  for (const Variant& variant : variants)
    most = std::max(most, variant.devices);
  for (const Variant& variant : variants) {
    ASSIGN_OR_RETURN(const LeNetDevicesTask task, TaskOf(agent, variant));
    ASSIGN_OR_RETURN(const Devices devices, MakeDevices(agent, task));
    Curve& curve = curves.emplace_back(Curve{variant.name});
    ASSIGN_OR_RETURN(Measurement measurement,
                     Train(agent, devices, task, variant.name, curve));
    if (findings.further.empty() && most > 1 && variant.devices == most) {
      ASSIGN_OR_RETURN(findings.further,
                       TimeAllReduces(agent, devices, measurement.details));
    }
    findings.measurements.push_back(std::move(measurement));
  }
  findings.further += NoteEfficiency(findings.measurements, "1", "devices") +
                      FormatShares(findings.measurements, "reducing_share",
                                   "adds up gradients");
  findings.charts = {{"accuracy", CurvesChart("accuracy", "LeNet data-parallel",
                                              "epoch", "accuracy", curves)}};
  return Tell(findings);
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain<baton::examples::LeNetDevice>(
      argc, argv,
      {.workers = 2,
       .arguments = "--data=FILE [FLAGS]",
       .about = baton::examples::kAbout,
       .train = baton::examples::Run,
       .check = baton::examples::CheckFlags});
}
