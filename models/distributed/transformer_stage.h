// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/stage_routes.h"
#include "models/transformer.h"
#include "rpc/methods.h"

namespace baton::dist {

// A Transformer, or one stage of a cut one, that other workers may make here:
//   rpc::Create<dist::TransformerStage>(agent, "worker1", options, cuts, 1)
// A pipeline of a tied model's stages needs RoutesOf. Thread-compatible.
class TransformerStage final : public models::Transformer {
 public:
  // Errors as Transformer::MakeStage.
  static absl::StatusOr<std::unique_ptr<TransformerStage>> Make(
      const models::TransformerOptions& options,
      const std::vector<std::string>& cuts, int index);

  Variable Forward(const Variable& x) override;

  using Exports =
      rpc::Methods<&TransformerStage::Make, &TransformerStage::Forward>;

  // Of a pipeline of so many stages (PipelineOptions::routes): the weight of a
  // tied model's tokens goes straight from the first one to the last one.
  static std::vector<StageRoute> RoutesOf(
      const models::TransformerOptions& options, int stages);

 private:
  using Transformer::Transformer;
};

}  // namespace baton::dist
