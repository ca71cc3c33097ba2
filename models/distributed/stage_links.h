// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/stage_routes.h"

namespace baton::dist {

// How one stage of a pipeline receives values from earlier and later stages,
// and sends its results to them, in one step: MailLinks use messages and
// windows; LocalLinks never wait on the host. Used by the compute thread; what
// is sent must have been written on its current stream.
class StageLinks {
 public:
  virtual ~StageLinks() = default;

  // Returns why the step has ended; OK while it goes on.
  virtual absl::Status ended() const = 0;
  // Returns whether taking values of that stage may wait for it.
  virtual bool MayWait(int stage) const = 0;
  // Waits for the outputs of a stage before this one.
  virtual absl::StatusOr<Outputs> TakeInputs(int source, int micro_batch) = 0;
  // Waits for the gradients of what SendOutputs sent to that stage. A gradient
  // is undefined for a constant and for a value that the stage does not use;
  // the result is empty if it uses none.
  virtual absl::StatusOr<Values> TakeGradients(int target, int micro_batch) = 0;
  // Sends outputs to a later stage.
  virtual void SendOutputs(int target, int micro_batch,
                           const Outputs& outputs) = 0;
  // Sends gradients to the stage that the inputs came from; they are empty if
  // that stage gets none, as without training.
  virtual void SendGradients(int source, int micro_batch, Values gradients) = 0;
};

}  // namespace baton::dist
