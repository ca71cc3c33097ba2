// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What saving ResNet50 with Adam costs: how long a step is held up, how fast
// shards reach the disk, and how long it takes to read them again.
//
//   checkpoint_bench --folder=/data/bench
//   dd if=/dev/zero of=/data/bench/dd bs=1M count=293 conv=fsync
//
// Each save comes after one training step, as in a training.

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/checkpoint_writer.h"
#include "core/random.h"
#include "core/status.h"
#include "models/nn/loss.h"
#include "models/resnet.h"
#include "optim/adam.h"
#include "tests/bench/bench_main.h"
#include "tests/bench/timing.h"

ABSL_FLAG(std::string, folder, "/tmp/checkpoint_bench",
          "where to save; its checkpoints are removed");
ABSL_FLAG(int64_t, batch, 8, "images of a step");
ABSL_FLAG(int64_t, image, 64, "height and width of the images");
ABSL_FLAG(int, repeat, 5, "saves, after one that is not counted");

namespace baton {
namespace {

double SecondsSince(bench::Clock::time_point begin) {
  return bench::Microseconds(bench::Clock::now() - begin) / 1e6;
}

absl::Status Run() {
  const std::string folder = absl::GetFlag(FLAGS_folder);
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t image = absl::GetFlag(FLAGS_image);
  Generator generator(1);
  ASSIGN_OR_RETURN(const auto model, models::ResNet::Make({.depth = 50}));
  optim::Adam adam(model->NamedParameters(), {.lr = 1e-4});
  const Tensor images = RandNormal({batch, 3, image, image}, generator)
                            .Contiguous(MemoryFormat::kChannelsLast);
  const Tensor labels = RandInt(0, 1000, {batch}, generator);
  CheckpointWriter writer({.folder = folder, .keep = 2});
  for (int i = 0; i <= absl::GetFlag(FLAGS_repeat); ++i) {
    const auto step = bench::Clock::now();
    adam.ZeroGrad();
    nn::CrossEntropy(model->Forward(Variable(images)), labels).Backward();
    adam.Step();
    const double step_s = SecondsSince(step);

    const auto hold = bench::Clock::now();
    NamedTensors state = AsPart("model", model->StateDict());
    state.merge(AsPart("optimizer", adam.SharedState()));
    RETURN_IF_ERROR(writer.Save(i, state));
    const double hold_s = SecondsSince(hold);
    const auto write = bench::Clock::now();
    RETURN_IF_ERROR(writer.Wait());
    const double write_s = SecondsSince(write);

    const auto read = bench::Clock::now();
    ASSIGN_OR_RETURN(const Checkpoint saved, Checkpoint::Open(folder, i));
    ASSIGN_OR_RETURN(const NamedTensors all, saved.Read(saved.Names()));
    double bytes = 0;
    for (const auto& [name, tensor] : all)
      bytes += static_cast<double>(tensor.nbytes());
    if (i == 0) continue;
    std::printf(
        "step %.0f ms, held up %.1f ms (%.1f%%), %.0f MB written at %.0f MB/s, "
        "read at %.0f MB/s\n",
        1e3 * step_s, 1e3 * hold_s, 100 * hold_s / step_s, bytes / 1e6,
        bytes / 1e6 / write_s, bytes / 1e6 / SecondsSince(read));
  }
  for (const int64_t step : CheckpointSteps(folder))
    std::filesystem::remove_all(absl::StrCat(folder, "/step_", step));
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::bench::Main(argc, argv, baton::Run);
}
