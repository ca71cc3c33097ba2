// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "examples/parameter_server_batch/batch_server.h"
#include "models/data/loader.h"
#include "rpc/registry.h"

namespace baton::examples {

// Trains at the worker where it lives. Calls come one at a time.
class BatchTrainer {
 public:
  // `number` must be unique: it seeds the order of the images and their random
  // transforms.
  static absl::StatusOr<std::unique_ptr<BatchTrainer>> Make(
      rpc::CallContext& call, const BatchTask& task,
      const RRef<BatchServer>& server, int64_t number);

  // Reports gradients until the server's last step, or until the caller is
  // lost; returns how many.
  absl::StatusOr<int64_t> Train(rpc::CallContext& call);

  using Exports = rpc::Methods<&BatchTrainer::Make, &BatchTrainer::Train>;

 private:
  BatchTrainer(std::unique_ptr<models::ResNet> model, FlatModel flat,
               std::unique_ptr<data::Loader> loader, RRef<BatchServer> server)
      : model_(std::move(model)),
        flat_(std::move(flat)),
        loader_(std::move(loader)),
        server_(std::move(server)) {}
  absl::StatusOr<data::Batch> NextBatch();
  GradientReport ReportOn(const rpc::Agent& agent, const data::Batch& batch);

  const std::unique_ptr<models::ResNet> model_;
  const FlatModel flat_;
  const std::unique_ptr<data::Loader> loader_;
  const RRef<BatchServer> server_;
};

// Reports the same gradients again and again, to measure the time of a report.
// Lives at a worker; calls come one at a time.
class ReportPusher {
 public:
  static absl::StatusOr<std::unique_ptr<ReportPusher>> Make(
      rpc::CallContext& call, const BatchTask& task,
      const RRef<BatchServer>& server);
  // From now on the server's steps wait for this pusher. Returns the bytes of a
  // report and the state that answers it.
  absl::StatusOr<int64_t> Join();
  // Returns reports per second, each answered by a new state; the first five do
  // not count. Then leaves the server. Ends early when the caller is lost.
  absl::StatusOr<double> Run(rpc::CallContext& call, int64_t pushes);

  using Exports = rpc::Methods<&ReportPusher::Make, &ReportPusher::Join,
                               &ReportPusher::Run>;

 private:
  ReportPusher(std::unique_ptr<models::ResNet> model, FlatModel flat,
               RRef<BatchServer> server)
      : model_(std::move(model)),
        flat_(std::move(flat)),
        server_(std::move(server)) {}

  const std::unique_ptr<models::ResNet> model_;
  const FlatModel flat_;
  const RRef<BatchServer> server_;
};

void RegisterBatchTraining(rpc::Registry& registry);

}  // namespace baton::examples
