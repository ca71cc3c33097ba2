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

// The command line of programs that train a pipeline of any model, checked.
struct PipelineSettings {
  // Where the model is cut into stages.
  std::vector<std::string> cuts;
  // Whether measurements choose the cuts and, if none are given, the split
  // sizes (planning.h).
  bool choose_stages = false;
  // No flag names stages, micro-batches or their order.
  bool names_no_stages = false;
  int64_t worker_mib = 0;  // memory limit of a worker for that; 0: as in
                           // dist::PlanRequest
  int trials = 4;          // plans to try before one is chosen
  // The flags that planning has set because they make its plan faster.
  std::vector<std::string> refined_by = {};
  std::vector<std::string> variants;  // among those of PipelineDefaults
  std::vector<int64_t> split_sizes;   // for pipelined variants
  // Replaces split_sizes: the rows of each micro-batch, one list per
  // measurement.
  std::vector<std::vector<int64_t>> micro_batches;
  int64_t batch = 120;            // rows
  dist::ScheduleChoice schedule;  // for the pipelined variant
  int replicas = 1;  // copies of the pipeline, at equal shares of the workers
  bool recover = false;  // the pipeline survives lost workers
  std::string journal;   // RecoveryOptions::journal
  dist::Loss loss = dist::Loss::kMse;
  bool recompute = false;
  int at_once = 1;       // micro-batches that a GPU works on at once
  bool overlap = false;  // PipelineOptions::overlap
  bool graph = true;     // record and replay on GPUs
  bool deferred_batch_norm = false;
  // The paths that links between workers may have; empty: any.
  std::vector<std::string> require_path;
  // Files for the results; empty: none.
  std::string json;
  std::string plot;
  std::string trace;
  std::string save_schedule;

  int stages() const { return static_cast<int>(cuts.size()) + 1; }
};

// Values that the flags do not set.
struct PipelineDefaults {
  int64_t batch = 0;  // from the program's own flag
  int64_t split_size = 1;
  // The variants that the program knows.
  std::vector<std::string> variants = {"single", "split", "calls", "pipelined",
                                       "local"};
  // Returns cuts that divide the model's work evenly over `stages` stages.
  std::function<absl::StatusOr<std::vector<std::string>>(int stages)> cuts;
};

// Reads the parsed flags. InvalidArgument names the flag that is wrong and says
// what it takes. Leaves the loss to the program.
absl::StatusOr<PipelineSettings> PipelineSettingsFromFlags(
    const PipelineDefaults& defaults);

// One row of an experiment.
struct Variant {
  // "single", "split", "calls", "pipelined 20", "local 20"
  std::string name = {};
  bool cut = false;        // over all stages; false: whole on one worker
  int64_t split_size = 0;  // 0: not pipelined, or see micro_batches
  // The rows of each micro-batch; empty: see split_size.
  std::vector<int64_t> micro_batches = {};
  bool local = false;  // all stages at one worker
  bool calls = false;  // the trainer calls one stage after the other
  bool pipelined() const { return split_size > 0 || !micro_batches.empty(); }
};
std::vector<Variant> VariantsOf(const PipelineSettings& settings);

}  // namespace baton::examples
