// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>

#include "rpc/agent.h"
#include "rpc/view.h"

namespace baton::dist {

// Counts the training steps that a worker has taken part in: by stepping
// parameters that it has, by reducing its copy's gradients, or by pushing
// gradients to servers. Attach gives each agent one, as a service and as the
// table "training". Thread-safe.
class StepCount {
 public:
  void Add() { steps_.fetch_add(1, std::memory_order_relaxed); }
  // Returns the table: one row, and none before the first step.
  rpc::View View() const;

 private:
  std::atomic<uint64_t> steps_ = 0;
};

// Counts a step at the agent's worker, if it has distributed autograd.
void CountStep(const rpc::Agent& agent);

}  // namespace baton::dist
