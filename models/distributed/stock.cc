// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stock.h"

#include "autograd/distributed/context.h"
#include "models/distributed/checkpoint.h"
#include "models/distributed/data_parallel/elastic.h"
#include "models/distributed/devices.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/profile.h"
#include "models/distributed/resnet_stage.h"
#include "models/distributed/server/parameter_server.h"
#include "models/distributed/transformer_stage.h"
#include "optim/distributed/registry.h"
#include "rpc/collectives/collectives.h"

namespace baton::dist {

void RegisterStock(rpc::Registry& registry) {
  Register(registry);
  RegisterPipeline(registry);
  RegisterDevices(registry);
  RegisterCheckpoints(registry);
  RegisterModule<ResNetStage>(registry);
  RegisterModule<TransformerStage>(registry);
  RegisterLinks(registry);
  RegisterProfile<ResNetStage>(registry);
  RegisterProfile<TransformerStage>(registry);
  RegisterOptimizers(registry);
  RegisterParameterServers(registry);
  rpc::RegisterCollectives(registry);
  RegisterElastic(registry);
}

void AttachStock(rpc::Agent& agent) {
  Attach(agent);
  rpc::AttachCollectives(agent);
  AttachElastic(agent);
}

}  // namespace baton::dist
