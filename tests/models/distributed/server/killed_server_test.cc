// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/rendezvous.h"
#include "tests/models/distributed/server/pusher.h"
#include "tests/support/child_process.h"
#include "tests/support/kills.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using ::testing::Each;
using testing::IsOk;
using testing::kElements;
using testing::Kills;
using testing::MillisSince;
using testing::Pusher;
using testing::Within;
using Clock = std::chrono::steady_clock;

// The median, because other programs of the machine may hold up a few.
void ExpectTakeover(const char* mode, const char* what,
                    std::vector<int64_t> ms) {
  std::sort(ms.begin(), ms.end());
  const int64_t median = ms[ms.size() / 2];
  std::printf("%s: %s: median %lld ms, most %lld ms of %zu\n", mode, what,
              static_cast<long long>(median), static_cast<long long>(ms.back()),
              ms.size());
  EXPECT_LT(median, 2'000) << what;
}

// Two servers, each a process with one shard and the backup of the other's, and
// this process, which has the directory and trains. A server that was killed is
// started again.
class KilledServer : public ::testing::TestWithParam<Consistency> {
 protected:
  void SetUp() override {
    auto rendezvous = rpc::RendezvousServer::Make("127.0.0.1:0", {});
    ASSERT_THAT(rendezvous, IsOk());
    rendezvous_ = *std::move(rendezvous);
    for (const std::string& name : names_) Start(name);
    agent_ = testing::JoinAsTrainer(rendezvous_->address(), /*workers=*/3);
    ASSERT_NE(agent_, nullptr);
    ServerOptions options;
    options.mode = GetParam();
    options.staleness = 2;
    options.rule = ops::SgdRule{.lr = 1};
    options.average = false;
    options.backups = true;
    options.trainers = 2;
    options.part_bytes = 1 << 14;
    options.tables = {testing::PushedTable()};
    auto servers = ParameterServers::Make(*agent_, names_, options,
                                          {{"x", Tensor::Zeros({kElements})}});
    ASSERT_THAT(servers, IsOk());
    servers_ = *std::move(servers);
  }
  void Start(const std::string& name) {
    processes_[name] = std::make_unique<ChildProcess>(
        std::vector<std::string>{testing::ProgramPath("shard_server"), name,
                                 rendezvous_->address(), "3"});
  }
  std::unique_ptr<ServerClient> Reader() {
    auto reader =
        ServerClient::Join(*agent_, servers_->directory(), std::nullopt);
    EXPECT_THAT(reader, IsOk());
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  // Worker that serves a shard, where it has a backup.
  std::optional<std::string> ServerOf(int32_t shard) {
    const auto place =
        servers_->directory().Async<&ServerDirectory::Locate>(shard, 0).Await();
    if (!place.ok()) return std::nullopt;
    const auto report =
        place->primary->Async<&ServerShard::Report>(rpc::CallOptions{}).Await();
    if (!report.ok() || !report->serves || !report->has_backup)
      return std::nullopt;
    return place->primary->owner().name;
  }
  void ExpectPushed(int64_t pushes) {
    const auto reader = Reader();
    const auto pulled = reader->Pull().Await();
    ASSERT_THAT(pulled, IsOk());
    const Tensor values = Tensor::Empty({kElements});
    pulled->CopyTo({values});
    const auto rows = reader->PullRows(0, testing::PushedRows()).Await();
    ASSERT_THAT(rows, IsOk());
    const auto all = Each(static_cast<float>(pushes));
    EXPECT_THAT(values.ToVector<float>(), all);
    EXPECT_THAT(rows->ToVector<float>(), all);
  }

  const std::vector<std::string> names_ = {"one", "two"};
  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;
  std::unique_ptr<rpc::Agent> agent_;
  std::unique_ptr<ParameterServers> servers_;
};

TEST_P(KilledServer, ItsBackupHasAllThatWasAcknowledged) {
  constexpr std::chrono::seconds kSoon{50};
  std::mt19937 random(static_cast<unsigned>(GetParam()) + 1);
  std::vector<int64_t> pushes_ms, idle_ms;
  Pusher first(*agent_, servers_->directory(), 0);
  Pusher second(*agent_, servers_->directory(), 1);
  for (int kill = 0; kill < Kills(3); ++kill) {
    std::vector<std::optional<std::string>> serving(2);
    ASSERT_TRUE(Within(kSoon, [&] {
      serving = {ServerOf(0), ServerOf(1)};
      return serving[0].has_value() && serving[1].has_value();
    }));
    // Knows the servers, and has no call under way when one is lost.
    const auto idle = Reader();
    ASSERT_THAT(idle->Pull().Await(), IsOk());
    const std::vector<int64_t> epochs = {idle->EpochOf(0), idle->EpochOf(1)};
    const int64_t before =
        first.acknowledged() + static_cast<int64_t>(random() % 50);
    ASSERT_TRUE(Within(kSoon, [&] { return first.acknowledged() > before; }));
    const std::string killed = *serving[random() % 2];
    first.TakeLongest();
    second.TakeLongest();
    const std::vector<int64_t> at_kill = {first.acknowledged(),
                                          second.acknowledged()};
    processes_[killed]->Kill(SIGKILL);
    const auto killed_at = Clock::now();
    for (int32_t shard = 0; shard < 2; ++shard) {
      const auto at = static_cast<size_t>(shard);
      if (*serving[at] != killed) continue;
      EXPECT_TRUE(
          Within(kSoon, [&] { return idle->EpochOf(shard) > epochs[at]; }));
    }
    idle_ms.push_back(MillisSince(killed_at));
    ASSERT_TRUE(Within(kSoon, [&] {
      return first.acknowledged() > at_kill[0] + 5 &&
             second.acknowledged() > at_kill[1] + 5;
    }));
    pushes_ms.push_back(std::max(first.TakeLongest(), second.TakeLongest()));
    EXPECT_LT(pushes_ms.back(), 20'000);  // a push waits 60 s for a server
    processes_[killed]->Wait();
    Start(killed);
  }
  first.End();
  second.End();
  ExpectPushed(first.acknowledged() + second.acknowledged());
  const char* const mode = Name(GetParam());
  ExpectTakeover(mode, "longest push at a kill", pushes_ms);
  ExpectTakeover(mode, "until one that waits knows the backup", idle_ms);
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledServer,
                         ::testing::Values(Consistency::kBulkSynchronous,
                                           Consistency::kBoundedStale,
                                           Consistency::kAsynchronous),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace
}  // namespace baton::dist
