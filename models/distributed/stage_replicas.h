// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "core/tensor.h"
#include "models/distributed/data_parallel/gradient_buckets.h"
#include "models/distributed/gradient_sums.h"
#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// One stage and its copies in other pipelines, each of which trains on rows of
// its own: in place of its gradients it has the mean of all copies'. All of
// them do the same. Confined to the thread that runs the stage, but Make and
// Abort.
class StageReplicas {
 public:
  using Group = std::shared_ptr<rpc::ProcessGroup>;
  using Made = Future<std::shared_ptr<StageReplicas>>;
  // Ready once parameters and buffers are those of the first member. Nobody
  // else is to use the module meanwhile.
  static Made Make(const nn::Module& module, Group group);

  // The last backward of a step is over: begins to reduce what is in the sums
  // of the stage's parameters.
  void Begin(GradientSums& sums);
  // The means are in the sums; waits for them. A parameter that no copy has a
  // gradient of has none; where others have one, this one's is zero.
  absl::Status Finish(GradientSums& sums);
  // All copies' steps fail, this one and those to come.
  void Abort(const absl::Status& why) const;

 private:
  StageReplicas(const nn::Module& module, Group group);

  const Group group_;
  // That require gradients.
  std::vector<Variable> parameters_;
  // Of the step.
  std::vector<std::vector<size_t>> kinds_;  // of parameters' gradients
  std::vector<FlatTensor> gradients_;       // of each kind
  Tensor has_;  // u8: by parameter, whether some has one
  std::vector<Future<void>> calls_;
};

}  // namespace baton::dist
