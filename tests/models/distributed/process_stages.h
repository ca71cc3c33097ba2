// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/distributed/context.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {

// What the workers of pipeline_processes_test.cc, each a process, can make.
inline void RegisterProcessStages(rpc::Registry& registry) {
  Register(registry);
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<testing::NoisyStage>(registry);
}

}  // namespace baton::dist
