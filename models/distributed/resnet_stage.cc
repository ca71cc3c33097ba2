// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/resnet_stage.h"

#include "core/status.h"

namespace baton::dist {

absl::StatusOr<std::unique_ptr<ResNetStage>> ResNetStage::Make(
    const models::ResNetOptions& options, const std::vector<std::string>& cuts,
    int index) {
  ASSIGN_OR_RETURN(std::vector<std::string> units,
                   StageUnits(options, cuts, index));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<ResNetStage>> {
    return std::unique_ptr<ResNetStage>(
        new ResNetStage(options, std::move(units)));
  });
}

Variable ResNetStage::Forward(const Variable& x) { return ResNet::Forward(x); }

}  // namespace baton::dist
