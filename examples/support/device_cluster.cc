// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/device_cluster.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "examples/support/trainer.h"
#include "models/distributed/stock.h"
#include "rpc/transports/in_process.h"

namespace baton::examples {

absl::StatusOr<std::unique_ptr<DeviceCluster>> DeviceCluster::Make(
    int devices) {
  rpc::InProcessNetwork network;
  std::vector<std::unique_ptr<rpc::Transport>> transports;
  std::vector<rpc::WorkerInfo> everyone;
  for (int i = 0; i <= devices; ++i) {
    transports.push_back(network.NewTransport());
    everyone.push_back(
        {.name = i == 0 ? "trainer" : absl::StrCat("device", i - 1),
         .rank = rpc::Rank{i},
         .incarnation = 1,
         .address = transports.back()->address()});
  }
  auto cluster = std::make_unique<DeviceCluster>();
  for (size_t i = 0; i < everyone.size(); ++i) {
    rpc::AgentOptions options;
    options.self = everyone[i];
    options.peers = everyone;
    options.on_start = dist::AttachStock;
    ASSIGN_OR_RETURN(auto agent,
                     rpc::Agent::Start(std::move(options), MakeRegistry(),
                                       std::move(transports[i])));
    if (i > 0) cluster->workers_.push_back(everyone[i].name);
    cluster->agents_.push_back(std::move(agent));
  }
  return cluster;
}

absl::Status DeviceCluster::Shutdown() {
  // Each agent waits for the others to give back handles of its objects.
  std::vector<std::thread> threads;
  std::vector<absl::Status> results(agents_.size());
  for (size_t i = 0; i < agents_.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = agents_[i]->Shutdown(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : results) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace baton::examples
