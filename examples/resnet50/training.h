// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "examples/resnet50/settings.h"
#include "rpc/agent.h"

namespace baton::examples {

// Trains on the images of settings.data over the workers, epoch by epoch, with
// the test accuracy after each; prints a summary. Saves and
// resumes as settings.saving says. Small images (at most 64 pixels)
// get the stem that suits them.
absl::Status TrainOnImages(rpc::Agent& agent, std::vector<std::string> workers,
                           Settings settings);

// "x/train.tgz" -> "x/test.tgz" where that exists; else empty.
std::string TestDataBeside(const std::string& data);

}  // namespace baton::examples
