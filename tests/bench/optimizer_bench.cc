// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a step of all of ResNet50's parameters costs, beside a copy of as many
// bytes as it must read and write. One line for each optimizer; on a GPU the
// steps are recorded, and replays that follow one another are timed there, as a
// step follows its backward.
//
//   optimizer_bench --threads=2
//   optimizer_bench --device=cuda --optimizers=sgd,adam

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_split.h"
#include "core/graph.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/status.h"
#include "core/stream.h"
#include "models/resnet.h"
#include "optim/any.h"
#include "tests/bench/bench_main.h"
#include "tests/bench/timing.h"

ABSL_FLAG(std::string, device, "cpu", "cpu, cuda or cuda:1");
ABSL_FLAG(std::string, optimizers,
          "sgd;sgd,momentum=0.9;adam;adamw;adagrad;rmsprop",
          "which, as --optimizer of the programs takes them, with ; between");
ABSL_FLAG(int, repeat, 50, "timed steps, or rows of them");
ABSL_FLAG(int, threads, 2, "compute threads of the CPU");

namespace baton {
namespace {

// Replays in a row: how long the GPU waits for the first counts little.
constexpr int kReplays = 20;

// Microseconds of each of some calls; recorded ones on a GPU.
std::vector<double> TimesOn(Device device, const std::function<void()>& call) {
  const int repeat = absl::GetFlag(FLAGS_repeat);
  if (device.is_cpu()) return bench::TimesOf(repeat, 5, call);
  call();
  const Graph graph = Graph::Record({device}, call);
  graph.Replay();
  const Stream stream = CurrentStream(device);
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    Event start(device), end(device);
    start.Record(stream);
    for (int replay = 0; replay < kReplays; ++replay) graph.Replay();
    end.Record(stream);
    end.Synchronize();
    times.push_back(end.MillisecondsSince(start) * 1e3 / kReplays);
  }
  return times;
}

struct Parameters {
  std::vector<Variable> values;
  int64_t elements = 0;
};

absl::StatusOr<Parameters> ResNet50On(Device device) {
  ASSIGN_OR_RETURN(const auto model, models::ResNet::Make({.depth = 50}));
  model->To(device);
  Generator generator(1);
  Parameters all;
  for (Variable& parameter : model->Parameters()) {
    Tensor gradient = Tensor::EmptyLike(parameter.tensor());
    gradient.CopyFrom(RandNormal(parameter.shape(), generator).To(device));
    parameter.set_grad(gradient);
    all.elements += parameter.tensor().numel();
    all.values.push_back(std::move(parameter));
  }
  return all;
}

// A copy that reads half of the bytes and writes the other half.
double CopyTime(Device device, int64_t bytes) {
  const TensorOptions options{.dtype = DType::kU8, .device = device};
  const Tensor from = Tensor::Full({bytes / 2}, 1, options);
  const Tensor to = Tensor::Zeros({bytes / 2}, options);
  return bench::Median(TimesOn(device, [&] { to.CopyFrom(from); }));
}

absl::Status Run() {
  SetComputeThreads(absl::GetFlag(FLAGS_threads));
  ASSIGN_OR_RETURN(const Device device,
                   Device::Parse(absl::GetFlag(FLAGS_device)));
  ASSIGN_OR_RETURN(const Parameters parameters, ResNet50On(device));
  const std::vector<std::string> kinds =
      absl::StrSplit(absl::GetFlag(FLAGS_optimizers), ';');
  for (const std::string& kind : kinds) {
    ASSIGN_OR_RETURN(auto options, optim::AnyOptions::Parse(kind));
    options.lr = 1e-6;
    optim::Any optimizer(parameters.values, options);
    const std::vector<double> times =
        TimesOn(device, [&] { optimizer.Step(); });
    // The gradient is read; the value and the state are read and written.
    const int64_t bytes =
        parameters.elements * 4 * (3 + 2 * options.state_tensors());
    const double copy = CopyTime(device, bytes);
    const double step = bench::Median(times);
    const auto megabytes = static_cast<double>(bytes) / 1e6;
    std::printf(
        "%-18s %8.3f ms (best %.3f), %.0f MB at %.2f TB/s; a copy of them "
        "%.3f ms: %.2f of its time\n",
        kind.c_str(), step / 1e3, bench::Quantile(times, 0) / 1e3, megabytes,
        megabytes / step, copy / 1e3, step / copy);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::bench::Main(argc, argv, baton::Run);
}
