// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"

namespace baton::dist {

// How one stage of a pipeline, in one step, gets what it needs from the stages
// before and behind it, and gives them what it makes: MailLinks where a stage
// is a worker's own, LocalLinks where all are in one process. Used by the
// thread that computes; what is sent was written on its current stream.
class StageLinks {
 public:
  virtual ~StageLinks() = default;

  // Why the step has ended; OK while it goes on.
  virtual absl::Status ended() const = 0;
  // Waits for the output of the stage before; not of the first stage.
  virtual absl::StatusOr<Tensor> TakeInput(int micro_batch) = 0;
  // Waits for the gradient of what SendOutput gave; undefined where the next
  // stage does not use it.
  virtual absl::StatusOr<Tensor> TakeGradient(int micro_batch) = 0;
  // To the next stage; not of the last.
  virtual void SendOutput(int micro_batch, const Tensor& output) = 0;
  // To the stage before, if there is one: undefined where it gets none, as
  // without training.
  virtual void SendGradient(int micro_batch, Tensor gradient) = 0;
};

}  // namespace baton::dist
