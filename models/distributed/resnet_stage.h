// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/resnet.h"
#include "rpc/exports.h"

namespace baton::dist {

// A ResNet, or one stage of it, that other workers can create here:
//   rpc::Create<dist::ResNetStage>(agent, "worker1", options, cuts, 1)
// Thread-compatible.
class ResNetStage final : public models::ResNet {
 public:
  // Returns the errors of ResNet::MakeStage.
  static absl::StatusOr<std::unique_ptr<ResNetStage>> Make(
      const models::ResNetOptions& options,
      const std::vector<std::string>& cuts, int index);

  Variable Forward(const Variable& x) override;

  using Exports = rpc::Methods<&ResNetStage::Make, &ResNetStage::Forward>;

 private:
  using ResNet::ResNet;
};

}  // namespace baton::dist
