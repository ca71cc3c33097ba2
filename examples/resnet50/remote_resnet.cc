// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/remote_resnet.h"

namespace baton::examples {

absl::StatusOr<std::unique_ptr<RemoteResNet>> MakeRemoteResNet(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const Settings& settings, const RemoteResNet::Options& options) {
  return RemoteResNet::Make(
      agent, workers, {.model = settings.model, .optimizer = settings.sgd},
      settings, options);
}

PlannedModel PlannedResNet(rpc::Agent& agent, const Settings& settings) {
  return PlannedRemoteModel<dist::ResNetStage, optim::Sgd>(
      agent, {.model = settings.model, .optimizer = settings.sgd},
      settings.sgd.momentum > 0 ? 3 : 2);
}

}  // namespace baton::examples
