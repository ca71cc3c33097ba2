// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline_loss.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {

absl::StatusOr<std::optional<RRef<StageLoss>>> PipelineLoss::At(
    rpc::Agent& agent, const rpc::WorkerInfo& worker) const {
  if (!find_) return std::nullopt;
  if (owner_().name != worker.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("the loss is at ", owner_().name,
                     ", but the last stage, whose outputs it takes, at ",
                     worker.name, ": make it there"));
  }
  // The agent's own time limit ends the call.
  ASSIGN_OR_RETURN(auto loss, find_(agent).Await(kNoLimit));
  return loss;
}

}  // namespace baton::dist
