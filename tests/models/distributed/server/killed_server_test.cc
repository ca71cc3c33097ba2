// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "autograd/distributed/context.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using ::testing::Each;
using testing::IsOk;
using testing::Within;
using Clock = std::chrono::steady_clock;

// How often a server is killed; BATON_KILLS=100 is the long run.
int Kills() {
  const char* kills = std::getenv("BATON_KILLS");
  return kills == nullptr ? 2 : std::atoi(kills);
}

// Two servers, each a process with one shard and the backup of the other's, and
// this process, which has the directory and trains.
class KilledServer : public ::testing::TestWithParam<Consistency> {
 protected:
  std::unique_ptr<ChildProcess> Start(const std::string& name) {
    return std::make_unique<ChildProcess>(std::vector<std::string>{
        testing::ProgramPath("shard_server"), name, rendezvous_->address()});
  }
  void SetUp() override {
    auto rendezvous = rpc::RendezvousServer::Make("127.0.0.1:0", {});
    ASSERT_THAT(rendezvous, IsOk());
    rendezvous_ = *std::move(rendezvous);
  }
  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
};

// Pushes of one trainer, each of which adds one to every value.
struct Pushes {
  std::atomic<int64_t> acknowledged{0};
  std::atomic<int64_t> longest_ms{0};
  std::atomic<bool> over{false};

  void Run(ServerClient& client, const Tensor& gradient) {
    while (!over) {
      const auto begin = Clock::now();
      ASSERT_THAT(client.PushPull({gradient}).Await(), IsOk());
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
          Clock::now() - begin);
      longest_ms = std::max<int64_t>(longest_ms, took.count());
      ++acknowledged;
    }
  }
};

TEST_P(KilledServer, ItsBackupHasAllThatWasAcknowledged) {
  std::mt19937 random(static_cast<unsigned>(GetParam()) + 1);
  std::vector<int64_t> takeovers_ms;
  for (int kill = 0; kill < Kills(); ++kill) {
    SetUp();
    std::unique_ptr<ChildProcess> servers[] = {Start("one"), Start("two")};
    rpc::Registry registry;
    Register(registry);
    RegisterParameterServers(registry);
    rpc::ClusterOptions cluster;
    cluster.name = "trainer";
    cluster.rendezvous = rendezvous_->address();
    cluster.world_size = 3;
    cluster.agent.on_start = Attach;
    const auto agent = rpc::JoinCluster(cluster, registry);
    ASSERT_THAT(agent, IsOk());
    ServerOptions options;
    options.mode = GetParam();
    options.rule = ops::SgdRule{.lr = 1};
    options.average = false;
    options.backups = true;
    options.trainers = 2;
    options.part_bytes = 1 << 14;
    const Tensor gradient = Tensor::Full({20'000}, -1);
    const auto made = ParameterServers::Make(**agent, {"one", "two"}, options,
                                             {{"x", Tensor::Zeros({20'000})}});
    ASSERT_THAT(made, IsOk());
    Pushes pushes[2];
    std::vector<std::thread> trainers;
    for (int rank = 0; rank < 2; ++rank) {
      trainers.emplace_back([&, rank] {
        const auto client =
            ServerClient::Join(**agent, (*made)->directory(), rank);
        ASSERT_THAT(client, IsOk());
        pushes[rank].Run(**client, gradient);
      });
    }
    const auto acknowledged = [&] {
      return pushes[0].acknowledged + pushes[1].acknowledged;
    };
    const int64_t before = 10 + static_cast<int64_t>(random() % 50);
    EXPECT_TRUE(Within(std::chrono::seconds(50),
                       [&] { return acknowledged() >= before; }));
    servers[random() % 2]->Kill(SIGKILL);
    const int64_t at_kill = acknowledged();
    EXPECT_TRUE(Within(std::chrono::seconds(50),
                       [&] { return acknowledged() >= at_kill + 20; }));
    for (Pushes& each : pushes) each.over = true;
    for (std::thread& trainer : trainers) trainer.join();
    takeovers_ms.push_back(
        std::max(pushes[0].longest_ms.load(), pushes[1].longest_ms.load()));
    EXPECT_LT(takeovers_ms.back(), 20'000);  // a push waits 60 s for a server
    const auto reader =
        ServerClient::Join(**agent, (*made)->directory(), std::nullopt);
    ASSERT_THAT(reader, IsOk());
    const auto pulled = (*reader)->Pull().Await();
    ASSERT_THAT(pulled, IsOk());
    const Tensor values = Tensor::Empty({20'000});
    pulled->CopyTo({values});
    EXPECT_THAT(values.ToVector<float>(),
                Each(static_cast<float>(acknowledged())));
  }
  std::sort(takeovers_ms.begin(), takeovers_ms.end());
  std::printf("%s: longest push at a kill: median %lld ms, most %lld ms\n",
              Name(GetParam()),
              static_cast<long long>(takeovers_ms[takeovers_ms.size() / 2]),
              static_cast<long long>(takeovers_ms.back()));
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledServer,
                         ::testing::Values(Consistency::kBulkSynchronous,
                                           Consistency::kAsynchronous),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace
}  // namespace baton::dist
