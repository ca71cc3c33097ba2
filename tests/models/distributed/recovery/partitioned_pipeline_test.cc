// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/precision.h"
#include "models/distributed/recovery.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "rpc/spares.h"
#include "rpc/transports/grpc.h"
#include "tests/models/distributed/process_devices.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/models/distributed/recovery/undisturbed_losses.h"
#include "tests/rpc/cable.h"
#include "tests/support/within.h"

// Pipelines of whose workers one is alive, but neither hears the others nor is
// heard by them, and is back later.
namespace baton::dist {
namespace {

using testing::IsOk;

const std::vector<std::string> kPartitionedWorkers = {"one", "two", "three"};
constexpr std::chrono::milliseconds kLease{1000};
constexpr int kStepsBeforePartition = 3;  // a partition, and after it

// A trainer, three workers and a spare of this process, which meet at a
// rendezvous; each but the trainer is at a cable of its own.
class CabledWorkers {
 public:
  CabledWorkers() {
    std::map<std::string, std::future<std::unique_ptr<rpc::Agent>>> joining;
    const auto join = [&](const std::string& name) {
      joining[name] = std::async(std::launch::async,
                                 [this, name] { return Join(name, 4); });
    };
    for (const std::string& name : kPartitionedWorkers) cables_[name];
    cables_[rpc::SpareName(1)];
    for (const std::string& name : kPartitionedWorkers) join(name);
    join("trainer");
    for (auto& [name, agent] : joining) agents_[name] = agent.get();
    agents_[rpc::SpareName(1)] = Join(rpc::SpareName(1), rpc::kOneMore);
  }
  ~CabledWorkers() {
    for (const auto& [name, agent] : agents_)
      agent->Shutdown({.mode = kNow}).IgnoreError();
  }
  rpc::Agent& trainer() { return *agents_.at("trainer"); }
  testing::Cable& cable(const std::string& name) { return cables_.at(name); }

 private:
  static constexpr auto kNow = rpc::ShutdownOptions::Mode::kNow;

  // The transport without what does not go through a cable.
  std::unique_ptr<rpc::Agent> Join(const std::string& name, int world_size) {
    auto transport = *rpc::MakeGrpcTransport({.unix_socket = false,
                                              .lease = kLease,
                                              .shared_memory = false,
                                              .tcp_tensors = false,
                                              .inline_delivery = true});
    std::string rendezvous = rendezvous_->address();
    if (const auto cable = cables_.find(name); cable != cables_.end()) {
      transport = cable->second.Through(std::move(transport));
      rendezvous = cable->second.To(rendezvous);
    }
    rpc::JoinOptions join{
        .self = {.name = name,
                 .incarnation = std::hash<std::string>()(name),
                 .address = transport->address()},
        .world_size = world_size,
        .lease = kLease,
        .listens = true};
    rpc::AgentOptions options;
    options.on_start = Attach;
    options.lease = kLease;
    rpc::Registry registry;
    RegisterProcessStages(registry);
    auto agent = rpc::internal::JoinBy(
        rpc::internal::DialerOf(rendezvous, join.access), rendezvous, join,
        std::move(options), std::move(registry), std::move(transport), true);
    EXPECT_THAT(agent, IsOk());
    return *std::move(agent);
  }

  const std::unique_ptr<rpc::RendezvousServer> rendezvous_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::map<std::string, testing::Cable> cables_;
  std::map<std::string, std::unique_ptr<rpc::Agent>> agents_;
};

// The spare takes the first one's place, who is back when the second one's is
// free, and so on.
TEST(PartitionedPipeline, LearnsAsIfNothingHadHappened) {
  SetDeterministic(true);
  CabledWorkers workers;
  RecoveredStages stages(workers.trainer(), kPartitionedWorkers);
  const auto pipeline = stages.Pipeline();
  ASSERT_NE(pipeline, nullptr);
  std::vector<double> losses;
  const auto step = [&] { return RecoveredStages::AddLoss(*pipeline, losses); };
  for (const auto& module : stages.modules()) {
    for (int i = 0; i < kStepsBeforePartition; ++i) ASSERT_TRUE(step());
    const std::string victim = module.owner().name;
    SCOPED_TRACE(victim);
    workers.cable(victim).Cut();
    const int64_t before = pipeline->recoveries();
    while (pipeline->recoveries() == before) ASSERT_TRUE(step());
    EXPECT_NE(module.owner().name, victim);
    workers.cable(victim).Mend();
    EXPECT_TRUE(testing::Within(std::chrono::seconds(30), [&] {
      return workers.trainer().Find(victim).ok();
    }));
  }
  for (int i = 0; i < kStepsBeforePartition; ++i) ASSERT_TRUE(step());
  ExpectSame(losses, UndisturbedLosses(losses.size(), kPartitionedWorkers),
             1e-3);
  SetDeterministic(false);
}

}  // namespace
}  // namespace baton::dist
