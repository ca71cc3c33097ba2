// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/random.h"
#include "examples/support/digits.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "models/lenet.h"
#include "rpc/registry.h"

namespace baton::examples {

struct LeNetTask {
  std::string data;
  int64_t batch = 32;  // per trainer
  uint64_t seed = 1;
  int64_t trainers = 1;
  dist::Compression compression{};  // of pushed gradients
  static constexpr auto Fields() {
    using T = LeNetTask;
    return std::tuple{&T::data, &T::batch, &T::seed, &T::trainers,
                      &T::compression};
  }
};

std::vector<std::pair<std::string, Tensor>> NamedValues(
    const nn::Module& module);
// Returns the share of images that the model classifies correctly.
double Accuracy(models::LeNet& model, const Digits& digits);

// One trainer of a LeNet whose parameters are at servers. Lives at the worker
// that trains. Calls come one at a time.
class LeNetTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<LeNetTrainer>> Make(
      rpc::CallContext& call, const LeNetTask& task,
      const RRef<dist::ServerDirectory>& directory, int64_t rank);

  // Joins the other trainers, pushes the gradients of `pushes` batches and
  // leaves. Every trainer has made `first` pushes before. Returns the mean loss
  // of the last batches. Ends early when the caller is lost.
  absl::StatusOr<double> Train(rpc::CallContext& call, int64_t first,
                               int64_t pushes);

  using Exports = rpc::Methods<&LeNetTrainer::Make, &LeNetTrainer::Train>;

 private:
  LeNetTrainer(rpc::Agent& agent, const LeNetTask& task,
               RRef<dist::ServerDirectory> directory, int64_t rank,
               Digits digits);
  Digits Batch(int64_t push);
  absl::StatusOr<double> Step(dist::ServerClient& client, const Digits& batch);

  rpc::Agent& agent_;
  const LeNetTask task_;
  const RRef<dist::ServerDirectory> directory_;
  const int64_t rank_;
  const Digits digits_;
  Generator generator_;
  models::LeNet model_;
  std::vector<int64_t> order_;  // of the samples in this epoch
  int64_t epoch_ = -1;
};

// Pushes the same gradients again and again, to measure the time of a push.
class GradientPusher {
 public:
  static absl::StatusOr<std::unique_ptr<GradientPusher>> Make(
      rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory,
      int64_t rank);
  // Returns pushes per second, each of which pulls the values; the first five
  // do not count. Ends early when the caller is lost.
  absl::StatusOr<double> Run(rpc::CallContext& call, int64_t pushes);
  // The same with pushes that pull nothing, and with pulls.
  absl::StatusOr<double> Push(rpc::CallContext& call, int64_t pushes);
  absl::StatusOr<double> Pull(rpc::CallContext& call, int64_t pulls);

  using Exports = rpc::Methods<&GradientPusher::Make, &GradientPusher::Run,
                               &GradientPusher::Push, &GradientPusher::Pull>;

 private:
  // Each trade pushes or pulls, or both.
  absl::StatusOr<double> Rate(rpc::CallContext& call, int64_t trades, bool push,
                              bool pull);

  explicit GradientPusher(std::unique_ptr<dist::ServerClient> client)
      : client_(std::move(client)) {}
  const std::unique_ptr<dist::ServerClient> client_;
};

// Registers what dist::RegisterStock does not.
void RegisterTrainers(rpc::Registry& registry);

}  // namespace baton::examples
