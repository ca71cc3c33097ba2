// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "autograd/distributed/context.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/cluster.h"
#include "tests/models/distributed/server/programs/shard_server.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {

inline int64_t MillisSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

// The worker "trainer" of a cluster of that many, the others of which are
// processes of the program shard_server; null where it cannot join.
inline std::unique_ptr<rpc::Agent> JoinAsTrainer(const std::string& rendezvous,
                                                 int workers) {
  rpc::Registry registry;
  dist::Register(registry);
  dist::RegisterParameterServers(registry);
  registry.AddFunction<&TakeDirectory>();
  rpc::ClusterOptions cluster;
  cluster.name = "trainer";
  cluster.rendezvous = rendezvous;
  cluster.world_size = workers;
  cluster.agent.on_start = dist::Attach;
  auto agent = rpc::JoinCluster(cluster, registry);
  EXPECT_THAT(agent, IsOk());
  return agent.ok() ? *std::move(agent) : nullptr;
}

// A table for rows of pushers, and the keys that each push has.
inline dist::RowTableOptions PushedTable() {
  return {.name = "rows", .width = 8, .rule = ops::SgdRule{.lr = 1}};
}
inline Tensor PushedRows() { return Tensor::Arange(100); }

// A trainer that pushes until it is told to end; each push adds one to every
// value, and to the rows where the servers have a table.
class Pusher {
 public:
  Pusher(rpc::Agent& agent, const RRef<dist::ServerDirectory>& directory,
         int64_t rank)
      : thread_([this, &agent, directory, rank] {
          const auto client = dist::ServerClient::Join(agent, directory, rank);
          ASSERT_THAT(client, IsOk());
          Run(**client);
        }) {}
  ~Pusher() { End(); }

  int64_t acknowledged() const { return acknowledged_; }
  // The longest push since the last call.
  int64_t TakeLongest() { return longest_ms_.exchange(0); }
  void End() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run(dist::ServerClient& client) {
    dist::Trade trade{.gradients = {Tensor::Full({kElements}, -1)},
                      .values = true};
    if (client.TableOf(PushedTable().name) == 0) {
      trade.row_gradients = {
          {.keys = PushedRows(),
           .gradients = Tensor::Full({100, PushedTable().width}, -1)}};
    }
    while (!over_) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_THAT(client.Do(trade).Await(), IsOk());
      longest_ms_ = std::max(longest_ms_.load(), MillisSince(begin));
      ++acknowledged_;
    }
  }

  std::atomic<int64_t> acknowledged_{0};
  std::atomic<int64_t> longest_ms_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;  // last: it uses the rest
};

}  // namespace baton::testing
