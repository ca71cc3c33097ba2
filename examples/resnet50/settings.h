// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/support/saving.h"
#include "models/distributed/pipeline.h"
#include "models/resnet.h"
#include "optim/sgd.h"

namespace baton::examples {

// What the ResNet programs are told on the command line, checked.
struct Settings {
  // The model and where it is cut into stages.
  models::ResNetOptions model;
  std::vector<std::string> cuts;
  // Whether cuts, and split sizes where there are none, are to be chosen by
  // measurement (planning.h).
  bool choose_stages = false;
  int64_t worker_mib = 0;  // that a worker may hold then; 0: any number
  int trials = 4;          // of plans, before one is taken
  // The experiment: each repeat trains `batches` batches.
  std::vector<std::string> variants;  // of single, split, pipelined
  std::vector<int64_t> split_sizes;   // of the pipelined variant
  // Instead of them: images of each micro-batch, one list a measurement.
  std::vector<std::vector<int64_t>> micro_batches;
  int64_t batch = 120;
  int64_t image = 128;
  int64_t batches = 3;
  int64_t repeat = 3;
  dist::ScheduleChoice schedule;  // of the pipelined variant
  dist::Loss loss = dist::Loss::kMse;
  optim::SgdOptions sgd;
  bool checkpoint_activations = false;
  bool graph = true;  // where there is a GPU
  // Training on real images; empty: synthetic ones.
  std::string data;
  std::string test_data;
  int64_t epochs = 1;
  int64_t limit = 0;  // images of an epoch; 0: all
  int loader_threads = 1;
  Saving saving;
  // Where results go.
  std::string json;
  std::string plot;
  std::string save_schedule;

  int stages() const { return static_cast<int>(cuts.size()) + 1; }
};

// From the flags, after they are parsed. InvalidArgument names the flag that is
// wrong and says what it takes.
absl::StatusOr<Settings> SettingsFromFlags();

}  // namespace baton::examples
