// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/remote_resnet.h"

namespace baton::examples {

absl::StatusOr<std::unique_ptr<RemoteResNet>> MakeRemoteResNet(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Settings& settings, const RemoteResNet::Options& options) {
  return RemoteResNet::Make(
      agent, workers,
      {.model = settings.model, .optimizer = settings.stepping.optimizer},
      settings, options);
}

std::optional<std::vector<std::string>> EvenCuts(int stages) {
  switch (stages) {
    case 1:
      return std::vector<std::string>();
    case 2:
      return std::vector<std::string>{"layer2"};
    case 3:
      return std::vector<std::string>{"layer1", "layer3"};
    case 4:
      return std::vector<std::string>{"layer1", "layer2", "layer3"};
    default:
      return std::nullopt;
  }
}

PlannedModel PlannedResNet(rpc::Agent& agent, const Settings& settings) {
  return PlannedRemoteModel<dist::ResNetStage>(
      agent,
      {.model = settings.model, .optimizer = settings.stepping.optimizer});
}

}  // namespace baton::examples
