// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/stage_routes.h"

namespace baton::dist {

// How one stage of a pipeline, in one step, gets what it needs from the stages
// before and behind it, and gives them what it makes: MailLinks by messages and
// windows, LocalLinks where nothing is waited for on the host. Used by the
// thread that computes; what is sent was written on its current stream.
class StageLinks {
 public:
  virtual ~StageLinks() = default;

  // Why the step has ended; OK while it goes on.
  virtual absl::Status ended() const = 0;
  // Waits for what a stage before this one gives it.
  virtual absl::StatusOr<Outputs> TakeInputs(int source, int micro_batch) = 0;
  // Waits for the gradients of what SendOutputs gave that stage: undefined ones
  // of constants and where it does not use a value, none where it uses none.
  virtual absl::StatusOr<Values> TakeGradients(int target, int micro_batch) = 0;
  // To a stage behind this one.
  virtual void SendOutputs(int target, int micro_batch,
                           const Outputs& outputs) = 0;
  // To the stage that the inputs came from; none where it gets none, as without
  // training.
  virtual void SendGradients(int source, int micro_batch, Values gradients) = 0;
};

}  // namespace baton::dist
