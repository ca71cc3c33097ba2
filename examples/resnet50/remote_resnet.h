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

// A ResNet whose stages live at workers. Its checkpoints have torchvision's
// names.
using RemoteResNet = RemoteModel<dist::ResNetStage>;

absl::StatusOr<std::unique_ptr<RemoteResNet>> MakeRemoteResNet(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Settings& settings, const RemoteResNet::Options& options);

// Returns cuts for 1 to 4 stages that divide the time of ResNet50's layers
// evenly.
std::optional<std::vector<std::string>> EvenCuts(int stages);

// Returns the model for ChooseStages. The agent must outlive it.
PlannedModel PlannedResNet(rpc::Agent& agent, const Settings& settings);

}  // namespace baton::examples
