// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::dist {

// What baton-worker offers and the stock trainers use: distributed autograd,
// pipelines, checkpoints, parameter servers, collectives, stages of ResNets and
// Transformers, and all optimizers. A program with modules of its own adds them
// to the same registry, in trainer and workers alike.
void RegisterStock(rpc::Registry& registry);
// Gives an agent what of it is the agent's. Call it before that serves calls:
//   options.on_start = dist::AttachStock;
void AttachStock(rpc::Agent& agent);

}  // namespace baton::dist
