// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/traced.h"

#include "core/status.h"
#include "tools/view/cluster_trace.h"

namespace baton::examples {

absl::StatusOr<double> Traced::TrainStep(const TrainingBatch& batch) {
  if (++steps_ != warm_up_steps()) return model_->TrainStep(batch);
  tools::ClusterTrace trace(agent_, agent_.workers());
  trace.Start(std::chrono::minutes(10));
  absl::StatusOr<double> loss = model_->TrainStep(batch);
  RETURN_IF_ERROR(loss.status());
  RETURN_IF_ERROR(tools::WriteTrace(path_, trace.Finish()));
  return loss;
}

}  // namespace baton::examples
