// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// One process: ResNet50 training steps, MSE on one-hot labels, SGD. Prints one
// JSON line. See docs/performance/cpu.md.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/status.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "optim/sgd.h"

ABSL_FLAG(int, batch, 24, "images a step");
ABSL_FLAG(int, image, 128, "height and width");
ABSL_FLAG(int, steps, 5, "timed steps, after one that is not");
ABSL_FLAG(int, threads, 2, "compute threads");
ABSL_FLAG(std::string, format, "channels_last",
          "memory order of activations: channels_last or contiguous");
ABSL_FLAG(int, classes, 1000, "size of the last layer");
ABSL_FLAG(bool, step_in_backward, false,
          "step each parameter when its gradient is complete");

namespace baton {
namespace {

// Resident pages now, in MiB.
double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096 / (1 << 20);
}

int64_t MinorFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct Report {
  std::vector<double> seconds;
  double loss = 0;
  double rss_after_warmup = 0, rss_end = 0;
  int64_t faults = 0;  // in the timed steps
};

Tensor OneHotTarget(int64_t batch, int64_t classes) {
  Tensor target = Tensor::Zeros({batch, classes});
  for (int64_t i = 0; i < batch; ++i)
    target.data<float>()[i * classes + i * 37 % classes] = 1;
  return target;
}

absl::StatusOr<Report> Run(MemoryFormat format) {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t image = absl::GetFlag(FLAGS_image);
  const int64_t classes = absl::GetFlag(FLAGS_classes);
  ASSIGN_OR_RETURN(auto model, models::ResNet::Make(
                                   {.num_classes = classes, .format = format}));
  optim::Sgd sgd(model->Parameters(), {.lr = 0.001});
  Generator generator(1);
  const Tensor x = RandNormal({batch, 3, image, image}, generator);
  const Tensor target = OneHotTarget(batch, classes);
  Report report;
  auto step = [&] {
    sgd.ZeroGrad();
    const Variable loss = nn::MseLoss(model->Forward(x), target);
    if (absl::GetFlag(FLAGS_step_in_backward)) {
      sgd.BackwardStep({loss});
    } else {
      loss.Backward();
      sgd.Step();
    }
    report.loss = loss.tensor().Item();
  };
  step();
  report.rss_after_warmup = ResidentMib();
  const int64_t faults = MinorFaults();
  for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) {
    const auto start = std::chrono::steady_clock::now();
    step();
    report.seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count());
  }
  report.faults = MinorFaults() - faults;
  report.rss_end = ResidentMib();
  return report;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Print(const Report& report) {
  const double median = Median(report.seconds);
  std::printf(
      "{\"what\": \"resnet50_step\", \"batch\": %d, \"image\": %d, "
      "\"threads\": %d, \"format\": \"%s\", \"steps\": %zu, \"median_s\": "
      "%.4f, \"min_s\": %.4f, \"images_per_s\": %.2f, \"loss\": %.6g, "
      "\"rss_first_mib\": %.0f, \"rss_last_mib\": %.0f, \"faults\": %lld}\n",
      absl::GetFlag(FLAGS_batch), absl::GetFlag(FLAGS_image),
      absl::GetFlag(FLAGS_threads), absl::GetFlag(FLAGS_format).c_str(),
      report.seconds.size(), median,
      *std::min_element(report.seconds.begin(), report.seconds.end()),
      absl::GetFlag(FLAGS_batch) / median, report.loss, report.rss_after_warmup,
      report.rss_end, static_cast<long long>(report.faults));
}

int Main() {
  const std::string format = absl::GetFlag(FLAGS_format);
  if (format != "channels_last" && format != "contiguous") {
    std::fprintf(stderr,
                 "--format: expected channels_last or contiguous, got %s\n",
                 format.c_str());
    return 2;
  }
  if (absl::GetFlag(FLAGS_steps) < 1) {
    std::fprintf(stderr, "--steps: expected 1 or more\n");
    return 2;
  }
  SetComputeThreads(absl::GetFlag(FLAGS_threads));
  const auto report = CatchErrors([&] {
    return Run(format == "contiguous" ? MemoryFormat::kContiguous
                                      : MemoryFormat::kChannelsLast);
  });
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", report.status().ToString().c_str());
    return 1;
  }
  Print(*report);
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return baton::Main();
}
