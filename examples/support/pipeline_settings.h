// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/pipeline.h"

namespace baton::examples {

// What programs that train a pipeline are told on the command line, whatever
// the model, checked.
struct PipelineSettings {
  // Where the model is cut into stages.
  std::vector<std::string> cuts;
  // Whether cuts, and split sizes where there are none, are to be chosen by
  // measurement (planning.h).
  bool choose_stages = false;
  // No flag says anything of stages, micro-batches or their order.
  bool names_no_stages = false;
  int64_t worker_mib = 0;  // that a worker may hold then; 0: any number
  int trials = 4;          // of plans, before one is taken
  std::vector<std::string> variants;  // of those PipelineDefaults names
  std::vector<int64_t> split_sizes;   // of pipelined variants
  // Instead of them: rows of each micro-batch, one list a measurement.
  std::vector<std::vector<int64_t>> micro_batches;
  int64_t batch = 120;            // rows
  dist::ScheduleChoice schedule;  // of the pipelined variant
  int replicas = 1;               // of it, each at its part of the workers
  bool recover = false;           // it, when workers are lost
  std::string journal;  // where it notes its steps for a trainer that follows
  dist::Loss loss = dist::Loss::kMse;
  bool checkpoint_activations = false;
  int at_once = 1;       // micro-batches that a GPU works on
  bool overlap = false;  // forwards beside backwards
  bool graph = true;     // where there is a GPU
  bool deferred_batch_norm = false;
  // The paths that links between workers may have; empty: any.
  std::vector<std::string> require_path;
  // Where results go; empty: nowhere.
  std::string json;
  std::string plot;
  std::string trace;
  std::string save_schedule;

  int stages() const { return static_cast<int>(cuts.size()) + 1; }
};

// What the flags leave to the program.
struct PipelineDefaults {
  int64_t batch = 0;  // as its own flag says
  int64_t split_size = 1;
  // That the program knows.
  std::vector<std::string> variants = {"single", "split", "calls", "pipelined",
                                       "local"};
  // Cuts that share the work of the model evenly over so many stages.
  std::function<absl::StatusOr<std::vector<std::string>>(int stages)> cuts;
};

// From the flags, after they are parsed. InvalidArgument names the flag that is
// wrong and says what it takes. The loss is the program's.
absl::StatusOr<PipelineSettings> PipelineSettingsFromFlags(
    const PipelineDefaults& defaults);

// One row of an experiment.
struct Variant {
  // "single", "split", "calls", "pipelined 20", "local 20"
  std::string name = {};
  bool cut = false;        // over all stages, or whole on one worker
  int64_t split_size = 0;  // 0: not pipelined, or as micro_batches say
  // Rows of each micro-batch; empty: of split_size.
  std::vector<int64_t> micro_batches = {};
  bool local = false;  // all stages in one worker
  bool calls = false;  // of one stage after the other, by the trainer
  bool pipelined() const { return split_size > 0 || !micro_batches.empty(); }
};
std::vector<Variant> VariantsOf(const PipelineSettings& settings);

}  // namespace baton::examples
