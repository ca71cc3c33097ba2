// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/distributed/stock.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/plugin/stays.h"
#include "tests/support/program_path.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

// Joins as "caller", has `worker` run what never returns, and leaves.
void CallStay(const std::string& rendezvous, const std::string& worker) {
  rpc::ClusterOptions options;
  options.name = "caller";
  options.rendezvous = rendezvous;
  options.world_size = 2;
  options.agent.on_start = dist::AttachStock;
  rpc::Registry registry;  // as the worker's
  dist::RegisterStock(registry);
  registry.AddFunction<&plugin::Stay>();
  const auto agent = rpc::JoinCluster(std::move(options), std::move(registry));
  ASSERT_TRUE(agent.ok()) << agent.status();
  const auto call = (*agent)->Async<&plugin::Stay>(worker);
  const absl::Status ended = call.Await(std::chrono::minutes(2));
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  (*agent)->Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}).IgnoreError();
}

// Static objects stay where they are for what still runs.
TEST(BatonWorker, EndsWithOneWhenAHandlerDoesNotReturn) {
  const std::unique_ptr<rpc::RendezvousServer> rendezvous =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::thread caller([&] { CallStay(rendezvous->address(), "a"); });
  bool asked = false;
  const Outcome outcome = RunProgram(
      {"baton-worker", "--name=a", "--log=info", "--world_size=2",
       "--shutdown_timeout=200ms", "--rendezvous=" + rendezvous->address(),
       "--plugin=" + testing::ProgramPath("plugins/libstays.so")},
      [&](const std::string& output, const Process& worker) {
        // A signal that comes while the worker joins ends it at once.
        for (const char* told : {"this handler stays", "serving at"})
          if (asked || output.find(told) == std::string::npos) return;
        asked = true;
        SendSignal(worker, SIGTERM);
      });
  caller.join();
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("left behind"));
}

}  // namespace
}  // namespace baton::tools
