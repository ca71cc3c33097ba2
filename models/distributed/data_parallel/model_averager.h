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
  // All members take the mean of all models, so that they are equal, bit for
  // bit ("local SGD", Stich, ICLR 2019).
  kPeriodic,
  // Each member takes the mean of its own model and one other's. The distance
  // between the two in the ring of ranks doubles each time: 1, 2, 4, ..., and 1
  // again. The mean over all members stays the same, and the models converge to
  // it; if the number of members is a power of two, one round through all
  // distances makes them equal except for rounding (Assran et al., "Stochastic
  // Gradient Push", ICML 2019).
  kGossip,
};

struct AveragingOptions {
  Averaging kind = Averaging::kPeriodic;
  int64_t period = 4;   // averages after this number of steps
  int64_t warm_up = 0;  // averages after each of the first steps
};

// For members of a group that each train their own model on their own inputs
// and average the models from time to time: less is sent than with
// DataParallel, and between averages no member waits.
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
// Buffers, such as running statistics, and the optimizers' state are not
// averaged. All members must make the same calls in the same order; an error at
// one is the group's error at all. Thread-compatible.
class ModelAverager {
 public:
  // Waits for all members; parameters and buffers become those of rank 0.
  // Returns InvalidArgument for a period below 1. The module must outlive this.
  static absl::StatusOr<std::unique_ptr<ModelAverager>> Make(
      const nn::Module& module, std::shared_ptr<rpc::ProcessGroup> group,
      const AveragingOptions& options = {});

  // Averages parameters when due. Call this after each of the optimizer's
  // steps.
  absl::Status Step();
  // Averages over all members now, as kPeriodic does; for example at the end.
  absl::Status AverageAll();

  int64_t steps() const { return steps_; }
  int64_t averaged() const { return averaged_; }  // number of times

 private:
  ModelAverager(const nn::Module& module,
                std::shared_ptr<rpc::ProcessGroup> group,
                const AveragingOptions& options);
  // Parameters of one dtype and device, and the tensors in which they are sent.
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
