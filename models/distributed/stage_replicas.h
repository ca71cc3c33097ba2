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

// One stage together with its copies in other pipelines, each of which trains
// on its own rows. Replaces the stage's gradients by the mean over all copies.
// All copies must make the same calls. Confined to the thread that runs the
// stage, except Make and Abort.
class StageReplicas {
 public:
  using Group = std::shared_ptr<rpc::ProcessGroup>;
  using Made = Future<std::shared_ptr<StageReplicas>>;
  // Done once parameters and buffers equal those of the group's first member.
  // Nobody else may use the module until then.
  static Made Make(const nn::Module& module, Group group);

  // Call this after the last backward of a step: begins to reduce the sums of
  // the stage's parameters.
  void Begin(GradientSums& sums);
  // Waits until the means are in the sums. A parameter without a gradient in
  // any copy has none; if other copies have one, this copy's counts as zero.
  absl::Status Finish(GradientSums& sums);
  // Makes the present step and all later ones fail in all copies.
  void Abort(const absl::Status& why) const;

 private:
  StageReplicas(const nn::Module& module, Group group);

  const Group group_;
  // The parameters that require gradients.
  std::vector<Variable> parameters_;
  // The following belong to the present step.
  std::vector<std::vector<size_t>> kinds_;  // indices of parameters whose
                                            // gradients are alike
  std::vector<FlatTensor> gradients_;       // of each kind
  Tensor has_;  // u8, by parameter: whether some copy has a gradient
  std::vector<Future<void>> calls_;
};

}  // namespace baton::dist
