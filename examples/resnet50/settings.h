// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/pipeline_settings.h"
#include "examples/support/saving.h"
#include "models/resnet.h"

namespace baton::examples {

// The command line of the ResNet programs, checked.
struct Settings : PipelineSettings {
  models::ResNetOptions model;
  Stepping stepping;
  // The experiment: each repeat trains `batches` batches.
  int64_t image = 128;
  int64_t batches = 3;
  int64_t repeat = 3;
  // Images to train on; empty: synthetic ones.
  std::string data;
  std::string test_data;
  int64_t epochs = 1;
  int64_t limit = 0;  // images in an epoch; 0: all
  int loader_threads = 1;
  Saving saving;
};

// Reads the parsed flags. InvalidArgument names the flag that is wrong and says
// what it takes.
absl::StatusOr<Settings> SettingsFromFlags();

}  // namespace baton::examples
