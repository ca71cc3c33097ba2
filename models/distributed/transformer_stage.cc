// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/transformer_stage.h"

#include <utility>

#include "core/status.h"

namespace baton::dist {

absl::StatusOr<std::unique_ptr<TransformerStage>> TransformerStage::Make(
    const models::TransformerOptions& options,
    const std::vector<std::string>& cuts, int index) {
  ASSIGN_OR_RETURN(std::vector<std::string> units,
                   StageUnits(options, cuts, index));
  return CatchErrors(
      [&]() -> absl::StatusOr<std::unique_ptr<TransformerStage>> {
        return std::unique_ptr<TransformerStage>(
            new TransformerStage(options, std::move(units)));
      });
}

Variable TransformerStage::Forward(const Variable& x) {
  return Transformer::Forward(x);
}

std::vector<StageRoute> TransformerStage::RoutesOf(
    const models::TransformerOptions& options, int stages) {
  if (!options.tied || stages < 2) return {};
  return {{.from = 0, .output = 1, .to = stages - 1, .input = 1}};
}

}  // namespace baton::dist
