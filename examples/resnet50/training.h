// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "examples/resnet50/settings.h"
#include "rpc/agent.h"

namespace baton::examples {

// Trains on the images of settings.data at the workers and prints the test
// accuracy after each epoch and a summary at the end. Saves and resumes as
// settings.saving says. Small images (at most 64 pixels) get the stem for
// CIFAR.
absl::Status TrainOnImages(rpc::Agent& agent, std::vector<std::string> workers,
                           Settings settings);

// Returns "x/test.tgz" for "x/train.tgz" if that file exists; else "".
std::string TestDataBeside(const std::string& data);

}  // namespace baton::examples
