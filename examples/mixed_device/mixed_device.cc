// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains one model on two devices: an embedding on the CPU, a linear layer on a
// GPU.
//   mixed_device --linear=cuda
// Learns which of the vocabulary's first words a sentence contains.

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/device.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/mixed_device/bag_of_words.h"
#include "examples/support/training_log.h"
#include "models/nn/loss.h"
#include "optim/sgd.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, table, "cpu", "where the embedding is: cpu or cuda[:N]");
ABSL_FLAG(std::string, linear, "cpu",
          "where the linear layer is: cpu or cuda[:N]");
ABSL_FLAG(int, steps, 100, "batches to train on");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "Trains a model whose embedding and linear layer are on two devices.";
constexpr int64_t kRows = 64, kLength = 8;

struct Sentences {
  Tensor ids;     // [N, L]
  Tensor labels;  // [N]
};

// Returns sentences of random words; the first word is the class.
Sentences Draw(const BagOfWords::Options& options, Generator& generator) {
  Sentences drawn;
  drawn.ids =
      RandInt(options.classes, options.words, {kRows, kLength}, generator);
  drawn.labels = RandInt(0, options.classes, {kRows}, generator);
  drawn.ids.Select(1, 0).CopyFrom(drawn.labels);
  return drawn;
}

absl::StatusOr<Device> DeviceFlag(const char* name, const std::string& text) {
  auto device = Device::Parse(text);
  if (device.ok()) return device;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, ": ", device.status().message()));
}

absl::Status Main() {
  BagOfWords::Options options;
  ASSIGN_OR_RETURN(options.table,
                   DeviceFlag("table", absl::GetFlag(FLAGS_table)));
  ASSIGN_OR_RETURN(options.linear,
                   DeviceFlag("linear", absl::GetFlag(FLAGS_linear)));
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_steps));
  const int steps = absl::GetFlag(FLAGS_steps);
  BagOfWords model(options);
  optim::Sgd sgd(model.Parameters(), {.lr = 2, .momentum = 0.9});
  TrainingLog log("mixed_device", "sentences", sgd.lr());
  Generator generator(7);
  std::printf("embedding on %s, linear layer on %s\n",
              options.table.ToString().c_str(),
              options.linear.ToString().c_str());
  for (int step = 1; step <= steps; ++step) {
    const Sentences batch = Draw(options, generator);
    sgd.ZeroGrad();
    const Variable loss =
        nn::CrossEntropy(model.Forward(batch.ids.To(options.table)),
                         batch.labels.To(options.linear));
    loss.Backward();
    sgd.Step();
    log.Step(loss.tensor().Item(), batch.labels.numel());
    if (step == 1 || step % 20 == 0 || step == steps)
      std::printf("step %3d: loss %.4f\n", step, loss.tensor().Item());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}
