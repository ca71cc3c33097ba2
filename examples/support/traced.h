// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "examples/support/trainable.h"
#include "rpc/agent.h"

namespace baton::examples {

// The model, of which a further warm-up step, which is not timed, is traced at
// all workers of the agent's cluster into the file `path`. Empty: the model as
// it is.
std::unique_ptr<Trainable> WithTrace(std::unique_ptr<Trainable> model,
                                     rpc::Agent& agent,
                                     const std::string& path);

}  // namespace baton::examples
