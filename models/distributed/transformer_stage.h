// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/stage_routes.h"
#include "models/transformer.h"
#include "rpc/exports.h"

namespace baton::dist {

// A Transformer, or one stage of it, that other workers can create here:
//   rpc::Create<dist::TransformerStage>(agent, "worker1", options, cuts, 1)
// If the model is tied, a pipeline of its stages needs RoutesOf.
// Thread-compatible.
class TransformerStage final : public models::Transformer {
 public:
  // Returns the errors of Transformer::MakeStage.
  static absl::StatusOr<std::unique_ptr<TransformerStage>> Make(
      const models::TransformerOptions& options,
      const std::vector<std::string>& cuts, int index);

  Variable Forward(const Variable& x) override;

  using Exports =
      rpc::Methods<&TransformerStage::Make, &TransformerStage::Forward>;

  // Returns the PipelineOptions::routes for this number of stages: a tied
  // model's token weight goes directly from the first stage to the last.
  static std::vector<StageRoute> RoutesOf(
      const models::TransformerOptions& options, int stages);

 private:
  using Transformer::Transformer;
};

}  // namespace baton::dist
