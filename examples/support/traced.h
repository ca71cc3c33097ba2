// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "examples/support/trainable.h"
#include "rpc/agent.h"

namespace baton::examples {

// Returns a model that takes one more warm-up step, and traces it at all
// workers of the agent's cluster into the file `path`. If `path` is empty,
// returns the model itself.
std::unique_ptr<Trainable> WithTrace(std::unique_ptr<Trainable> model,
                                     rpc::Agent& agent,
                                     const std::string& path);

}  // namespace baton::examples
