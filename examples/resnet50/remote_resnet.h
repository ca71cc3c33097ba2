// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/resnet50/settings.h"
#include "examples/support/remote_model.h"
#include "models/distributed/resnet_stage.h"
#include "rpc/agent.h"

namespace baton::examples {

// A ResNet whose stages live at workers. Its files have torchvision's names.
using RemoteResNet = RemoteModel<dist::ResNetStage>;

absl::StatusOr<std::unique_ptr<RemoteResNet>> MakeRemoteResNet(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Settings& settings, const RemoteResNet::Options& options);

// The cuts that share the work evenly, by the time of ResNet's layers, for 1 to
// 4 stages.
std::optional<std::vector<std::string>> EvenCuts(int stages);

// For ChooseStages. The agent outlives it.
PlannedModel PlannedResNet(rpc::Agent& agent, const Settings& settings);

}  // namespace baton::examples
