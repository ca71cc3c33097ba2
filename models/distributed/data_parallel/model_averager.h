// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/distributed/data_parallel/gradient_buckets.h"
#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

enum class Averaging {
  // All take the mean of all: they are equal then, bit for bit ("local SGD",
  // Stich, ICLR 2019).
  kPeriodic,
  // Each takes the mean of its own and one other's, whose distance in the ring
  // of ranks doubles from one time to the next: 1, 2, 4, ..., and 1 again. The
  // mean over all stays, and they come closer to it; where their number is a
  // power of two, a round of all distances makes them equal but for rounding
  // (Assran et al., "Stochastic Gradient Push", ICML 2019).
  kGossip,
};

struct AveragingOptions {
  Averaging kind = Averaging::kPeriodic;
  int64_t period = 4;   // averages after each so many steps
  int64_t warm_up = 0;  // of the first steps, each of which is averaged
};

// Members of a group that each train a model of their own by the gradients of
// their own inputs, and average the models now and then: less travels than with
// DataParallel, and nobody waits between.
//
//   ASSIGN_OR_RETURN(auto averager, dist::ModelAverager::Make(model, group));
//   optim::Sgd sgd(model.Parameters(), {.lr = 0.1});
//   for (...) {
//     sgd.ZeroGrad();
//     loss_fn(model(x), y).Backward();
//     sgd.Step();
//     RETURN_IF_ERROR(averager->Step());
//   }
//
// Buffers, such as running statistics, and optimizers' state stay each one's
// own. All members call the same in the same order; what goes wrong at one is
// the group's error at all. Thread-compatible.
class ModelAverager {
 public:
  // Waits for all members; parameters and buffers are rank 0's from then on.
  // InvalidArgument for a period below 1. The module must outlive this.
  static absl::StatusOr<std::unique_ptr<ModelAverager>> Make(
      const nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
      const AveragingOptions& options = {});

  // After each of the optimizer's steps: averages parameters when it is time.
  absl::Status Step();
  // Of all members, at once: as kPeriodic does, such as at the end.
  absl::Status AverageAll();

  int64_t steps() const { return steps_; }
  int64_t averaged() const { return averaged_; }  // so often

 private:
  ModelAverager(const nn::Module& module,
                std::shared_ptr<rpc::ProcessGroup> group,
                const AveragingOptions& options);
  // Parameters of a kind, and where they travel.
  struct Kind {
    std::vector<Tensor> parameters;
    FlatTensor own, other;
  };
  absl::Status Gossip();
  void CopyIn();
  void CopyOut();

  const std::shared_ptr<rpc::ProcessGroup> group_;
  const AveragingOptions options_;
  std::vector<Kind> kinds_;
  int distance_ = 1;
  int64_t steps_ = 0, averaged_ = 0;
};

}  // namespace baton::dist
