// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/stream.h"
#include "core/tensor.h"
#include "models/distributed/step_plan.h"

namespace baton::dist {

// The streams of one stage of a pipeline. Value type.
struct StageStreams {
  // Micro-batches use them in turn, so that as many run at once.
  std::vector<Stream> forward, backward;
  // For weight gradients, which no other stage waits for; empty: they use the
  // backward streams.
  std::vector<Stream> weights = {};

  // Uses the current stream of `device` for everything.
  static StageStreams Current(Device device);
  // Makes new streams of `gpu`.
  static StageStreams Make(Device gpu, int at_once);

  // Returns those of these streams that the plan's program uses, else the
  // current stream.
  StageStreams For(const StepPlan& plan) const;

  bool several() const { return forward.size() > 1; }
  const Stream& Forward(int micro_batch) const {
    return forward[static_cast<size_t>(micro_batch) % forward.size()];
  }
  const Stream& Backward(int micro_batch) const {
    return backward[static_cast<size_t>(micro_batch) % backward.size()];
  }

  // Fork makes the streams begin after the current stream's work; Join makes
  // the current stream continue after theirs. They also include the streams in
  // a recording.
  void Fork() const;
  void Join() const;

 private:
  std::vector<Stream> All() const;
};

// Makes later work of `stream` wait until `value`, which another stage has
// made, is there. For the CPU this thread waits. The CPU's streams never read
// memory of a GPU: a stream of that GPU copies it to the CPU.
void AwaitValue(const Tensor& value, const Stream& stream);

}  // namespace baton::dist
