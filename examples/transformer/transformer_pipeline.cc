// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a language model as a pipeline over worker processes:
//   baton-run --workers=2 --cores_per_worker=1 -- transformer_pipeline
//     --text=shakespeare.txt

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "examples/support/report.h"
#include "examples/support/trainer.h"
#include "examples/transformer/text_training.h"
#include "tools/command_line.h"

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: transformer_pipeline --text=FILE\n"
    "Trains a decoder-only transformer on the bytes of a text over the "
    "workers\n"
    "of a cluster: whole on one, split, and pipelined. Start it by baton-run,\n"
    "or give --rendezvous and --world_size.\n"
    "Default: --optimizer=adamw --lr=0.001 --lr_schedule=warm-cosine.";

absl::Status Run(rpc::Agent& agent, const std::vector<std::string>& workers,
                 const TextSettings& settings) {
  ASSIGN_OR_RETURN(const std::vector<Measurement> measurements,
                   TrainOnText(agent, workers, settings));
  const models::TransformerOptions& model = settings.task.model;
  RETURN_IF_ERROR(Report(
      settings,
      absl::StrCat("Transformer of ", model.layers, " blocks of ", model.width,
                   ", batches of ", settings.batch, " texts of ", model.context,
                   " tokens, ", workers.size(), " workers"),
      measurements));
  for (const Measurement& measurement : measurements) {
    for (const Detail& detail : measurement.details) {
      if (detail.name != "validation_loss") continue;
      RETURN_IF_ERROR(
          tools::Print(absl::StrCat(measurement.variant, ": validation loss ",
                                    std::get<double>(detail.value), "\n")));
    }
  }
  return absl::OkStatus();
}

absl::Status Main() {
  ASSIGN_OR_RETURN(const TextSettings settings, TextSettingsFromFlags());
  return RunTrainer(
      [&](rpc::Agent& agent, const std::vector<std::string>& workers) {
        return Run(agent, workers, settings);
      });
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::CatchErrors(baton::examples::Main));
}
