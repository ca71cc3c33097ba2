// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::dist {

// Registers what baton-worker offers and the stock trainers use: distributed
// autograd, pipelines, checkpoints, parameter servers, collectives, elastic
// runs, stages of ResNets and Transformers, and all optimizers. A program adds
// its own modules to the same registry, in trainer and workers alike.
void RegisterStock(rpc::Registry& registry);
// Attaches the per-agent parts of the stock to an agent. Call it before the
// agent serves calls:
//   options.on_start = dist::AttachStock;
void AttachStock(rpc::Agent& agent);

}  // namespace baton::dist
