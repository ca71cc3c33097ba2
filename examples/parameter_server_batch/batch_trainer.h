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

// Lives at a worker that trains. Calls come one at a time.
class BatchTrainer {
 public:
  // `number`: of its own, as the order of its images and what is random in them
  // come from it.
  static absl::StatusOr<std::unique_ptr<BatchTrainer>> Make(
      rpc::CallContext& call, const BatchTask& task,
      const RRef<BatchServer>& server, int64_t number);

  // Reports gradients until the server's last step; how many.
  absl::StatusOr<int64_t> Train();

  using Exports = rpc::Methods<&BatchTrainer::Make, &BatchTrainer::Train>;

 private:
  BatchTrainer(std::unique_ptr<models::ResNet> model,
               std::unique_ptr<data::Loader> loader, RRef<BatchServer> server)
      : model_(std::move(model)),
        loader_(std::move(loader)),
        server_(std::move(server)) {}
  absl::StatusOr<data::Batch> NextBatch();
  GradientReport ReportOn(const data::Batch& batch);

  const std::unique_ptr<models::ResNet> model_;
  const std::unique_ptr<data::Loader> loader_;
  const RRef<BatchServer> server_;
};

void RegisterBatchTraining(rpc::Registry& registry);

}  // namespace baton::examples
