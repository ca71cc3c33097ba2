// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "core/status.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline_loss.h"
#include "models/distributed/stock.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"
#include "rpc/agent.h"
#include "rpc/cluster.h"
#include "rpc/registry.h"
#include "rpc/transports/in_process.h"

namespace baton::dist {

// Registers T: by RegisterLoss if it is an nn::LossModule, by RegisterModule if
// it is another nn::Module, and by Registry::Add if it is another class with
// Exports.
template <typename T>
void RegisterPart(rpc::Registry& registry) {
  if constexpr (std::is_base_of_v<nn::LossModule, T>) {
    RegisterLoss<T>(registry);
  } else if constexpr (std::is_base_of_v<nn::Module, T>) {
    RegisterModule<T>(registry);
  } else {
    registry.Add<T>();
  }
}

// Returns InvalidArgument if the registry has a part of the stock already.
inline absl::Status AddStock(rpc::Registry& registry) {
  RETURN_IF_ERROR(registry.status());
  RegisterStock(registry);
  return Annotate(registry.status(),
                  "dist::Join registers all of dist::RegisterStock");
}

// As Join, with `registry` in addition to the stock.
inline absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinWithStock(
    rpc::ClusterOptions options, rpc::Registry registry) {
  RETURN_IF_ERROR(AddStock(registry));
  options.agent.on_start =
      [then = std::move(options.agent.on_start)](rpc::Agent& agent) {
        AttachStock(agent);
        if (then) then(agent);
      };
  return rpc::JoinCluster(std::move(options), std::move(registry));
}

// Makes this process a worker of the cluster that `options` name. It registers
// everything that Baton has (RegisterStock, AttachStock) and the program's own
// Parts:
//
//   ASSIGN_OR_RETURN(const auto agent, dist::Join<Front, Back>(options));
//
// All processes of a cluster must have the same parts; a baton-worker gets them
// from plug-ins. `registry` is for what is not a class, such as functions and
// hooks; it must not contain what RegisterStock registers.
// options.agent.on_start runs after AttachStock. Errors are those of
// rpc::JoinCluster.
template <typename... Parts>
absl::StatusOr<std::unique_ptr<rpc::Agent>> Join(rpc::ClusterOptions options,
                                                 rpc::Registry registry = {}) {
  (RegisterPart<Parts>(registry), ...);
  return JoinWithStock(std::move(options), std::move(registry));
}

// Makes this process a cluster of its own, which nobody can join: a trainer
// that is its only worker. Modules are on `device`, in `dtype`, unless their
// Placement says otherwise, so that a pipeline can have its stages on several
// devices of this process:
//
//   ASSIGN_OR_RETURN(const auto agent, dist::Alone<Front, Back>());
//   const std::string self = agent->self().name;
//   auto front = dist::Module<Front>::Create(
//       *agent, self, dist::Placement{.device = Device::Cuda(0)}, options);
//
// Errors are those of rpc::Agent::Start.
template <typename... Parts>
absl::StatusOr<std::unique_ptr<rpc::Agent>> Alone(Device device = Device::Cpu(),
                                                  DType dtype = DType::kF32) {
  rpc::Registry registry;
  (RegisterPart<Parts>(registry), ...);
  RETURN_IF_ERROR(AddStock(registry));
  auto transport = rpc::InProcessNetwork().NewTransport();
  rpc::AgentOptions options;
  options.self = {.name = "trainer",
                  .rank = rpc::Rank{0},
                  .incarnation = 1,
                  .address = transport->address(),
                  .compute = {.device = device, .dtype = dtype}};
  options.on_start = AttachStock;
  return rpc::Agent::Start(std::move(options), std::move(registry),
                           std::move(transport));
}

}  // namespace baton::dist
