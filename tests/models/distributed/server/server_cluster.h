// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/random.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "models/distributed/server/shard.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/training_cluster.h"

namespace baton::testing {

// Handles belong to the worker that was sent them: the others are sent this.
inline RRef<dist::ServerDirectory>& DirectoryToGive() {
  static RRef<dist::ServerDirectory> directory;
  return directory;
}
inline RRef<dist::ServerDirectory> GiveDirectory() { return DirectoryToGive(); }

// Servers bob and carol; alice has the directory and trains, dave trains, too.
class ServerTest : public ::testing::Test {
 protected:
  using Values = std::vector<std::pair<std::string, Tensor>>;
  using Client = std::unique_ptr<dist::ServerClient>;

  explicit ServerTest(
      const std::function<void(rpc::Registry&)>& add_types = nullptr,
      std::shared_ptr<rpc::FaultPlan> faults = nullptr)
      : cluster_(
            4,
            [&](rpc::Registry& registry) {
              dist::RegisterParameterServers(registry);
              registry.AddFunction<&GiveDirectory>();
              if (add_types != nullptr) add_types(registry);
            },
            TransportKind::kInProcess, {}, faults),
        faults_(std::move(faults)) {}
  ~ServerTest() override { DirectoryToGive() = {}; }

  void Make(dist::ServerOptions options, Values values,
            std::vector<std::string> servers = {"bob", "carol"}) {
    values_ = std::move(values);
    auto made = dist::ParameterServers::Make(cluster_.alice(), servers, options,
                                             values_);
    ASSERT_THAT(made, IsOk());
    servers_ = *std::move(made);
    DirectoryToGive() = servers_->directory();
  }
  Client Join(std::optional<int64_t> rank, const std::string& worker = "alice",
              const dist::ClientOptions& options = {}) {
    const auto directory =
        cluster_.at(worker).Async<&GiveDirectory>("alice").Await();
    EXPECT_THAT(directory, IsOk());
    auto joined = dist::ServerClient::Join(cluster_.at(worker), *directory,
                                           rank, options);
    EXPECT_THAT(joined, IsOk());
    return joined.ok() ? *std::move(joined) : nullptr;
  }
  RRef<dist::ServerShard> Primary(int32_t shard) {
    const auto place = servers_->directory()
                           .Async<&dist::ServerDirectory::Locate>(shard, 0)
                           .Await();
    EXPECT_THAT(place, IsOk());
    return *place->primary;
  }
  dist::ShardReport ReportOf(int32_t shard) {
    return *Primary(shard).Async<&dist::ServerShard::Report>().Await();
  }
  // What the servers have, in the keys' shapes.
  std::vector<Tensor> Read(dist::ServerClient& client) {
    std::vector<Tensor> tensors;
    for (const auto& [name, value] : values_)
      tensors.push_back(Tensor::ZerosLike(value));
    const auto pulled = client.Pull().Await();
    EXPECT_THAT(pulled, IsOk());
    if (pulled.ok()) pulled->CopyTo(tensors);
    return tensors;
  }
  // One gradient for each key.
  std::vector<Tensor> Gradients(Generator& generator) const {
    std::vector<Tensor> gradients;
    for (const auto& [name, value] : values_)
      gradients.push_back(RandNormal(value.shape(), generator));
    return gradients;
  }
  std::vector<Tensor> Filled(double value) const {
    std::vector<Tensor> tensors;
    for (const auto& [name, like] : values_)
      tensors.push_back(Tensor::Full(like.shape(), value));
    return tensors;
  }

  rpc::FaultPlan& faults() { return *faults_; }  // if there is one

  TrainingCluster cluster_;
  Values values_;
  std::unique_ptr<dist::ParameterServers> servers_;

 private:
  const std::shared_ptr<rpc::FaultPlan> faults_;
};

// Runs each on a thread of its own.
inline void RunBeside(const std::vector<std::function<void()>>& all) {
  std::vector<std::thread> threads;
  for (const auto& each : all) threads.emplace_back(each);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace baton::testing
