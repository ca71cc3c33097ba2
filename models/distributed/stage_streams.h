// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/stream.h"
#include "core/tensor.h"
#include "models/distributed/step_plan.h"

namespace baton::dist {

// The streams that one stage of a pipeline uses. Value type.
struct StageStreams {
  // Micro-batches take them in turn, so that as many are worked on at once.
  std::vector<Stream> forward, backward;
  // For gradients of weights, which nobody waits for; none: with the backward.
  std::vector<Stream> weights = {};

  // The current stream of `device` for all.
  static StageStreams Current(Device device);
  // Others of `gpu`.
  static StageStreams Make(Device gpu, int at_once);

  // Those that a plan's program uses of these; else the current one.
  StageStreams For(const StepPlan& plan) const;

  bool several() const { return forward.size() > 1; }
  const Stream& Forward(int micro_batch) const {
    return forward[static_cast<size_t>(micro_batch) % forward.size()];
  }
  const Stream& Backward(int micro_batch) const {
    return backward[static_cast<size_t>(micro_batch) % backward.size()];
  }

  // They begin after what the current stream has been given, and it goes on
  // after all of theirs. A recording takes them in by this.
  void Fork() const;
  void Join() const;

 private:
  std::vector<Stream> All() const;
};

// Until `value`, which another stage has made, is there for `stream`: later
// work of a GPU's waits, which for the CPU this thread does. The CPU's own
// streams read nothing on a GPU: what is there is copied by a stream of that
// GPU.
void AwaitValue(const Tensor& value, const Stream& stream);

}  // namespace baton::dist
