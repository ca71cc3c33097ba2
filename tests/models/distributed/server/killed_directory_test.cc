// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/distributed/server/client.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/models/distributed/server/pusher.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using ::testing::Each;
using testing::IsOk;
using testing::kElements;
using testing::MillisSince;
using testing::Pusher;
using testing::Within;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSoon{50};

// Servers "one" and "two", the process "maker", which has made them and has
// their directory, and this one, which trains.
class KilledDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    auto rendezvous = rpc::RendezvousServer::Make("127.0.0.1:0", {});
    ASSERT_THAT(rendezvous, IsOk());
    rendezvous_ = *std::move(rendezvous);
    testing::TakenDirectory() = Promise<RRef<ServerDirectory>>();
    Start({"one"});
    Start({"two"});
    Start({"maker", "one", "two"});
    agent_ = testing::JoinAsTrainer(rendezvous_->address(), /*workers=*/4);
    ASSERT_NE(agent_, nullptr);
    const auto directory = testing::TakenDirectory().future().Await(kSoon);
    ASSERT_THAT(directory, IsOk());
    directory_ = *directory;
  }
  void Start(const std::vector<std::string>& names, int workers = 4) {
    std::vector<std::string> command = {testing::ProgramPath("shard_server"),
                                        names[0], rendezvous_->address(),
                                        std::to_string(workers)};
    command.insert(command.end(), names.begin() + 1, names.end());
    processes_[names[0]] = std::make_unique<ChildProcess>(command);
  }
  void Kill(const std::string& name) {
    processes_[name]->Kill(SIGKILL);
    processes_[name]->Wait();
  }
  static bool GoesOn(const std::vector<const Pusher*>& pushers) {
    std::vector<int64_t> before;
    for (const Pusher* pusher : pushers)
      before.push_back(pusher->acknowledged());
    return Within(kSoon, [&] {
      for (size_t i = 0; i < pushers.size(); ++i)
        if (pushers[i]->acknowledged() < before[i] + 20) return false;
      return true;
    });
  }
  // Both shards have a primary and a backup.
  bool AreWhole(const RRef<ServerDirectory>& directory) {
    for (const int32_t shard : {0, 1}) {
      const auto place =
          directory.Async<&ServerDirectory::Locate>(shard, 0).Await();
      if (!place.ok() || !place->primary.has_value()) return false;
      const auto report = place->primary->Async<&ServerShard::Report>().Await();
      if (!report.ok() || !report->serves || !report->has_backup) return false;
    }
    return true;
  }

  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;
  std::unique_ptr<rpc::Agent> agent_;
  RRef<ServerDirectory> directory_;
};

TEST_F(KilledDirectory, IsFollowedByAServersThroughLossesOfServersToo) {
  Pusher first(*agent_, directory_, 0);
  const auto reader = ServerClient::Join(*agent_, directory_, std::nullopt);
  ASSERT_THAT(reader, IsOk());
  ASSERT_TRUE(GoesOn({&first}));
  Kill("maker");
  const auto killed = Clock::now();
  EXPECT_TRUE(GoesOn({&first}));
  EXPECT_TRUE(Within(
      kSoon, [&] { return (*reader)->directory().owner().name == "one"; }));
  std::printf("another directory after %lld ms\n",
              static_cast<long long>(MillisSince(killed)));
  const RRef<ServerDirectory> directory = (*reader)->directory();
  Pusher second(*agent_, directory, 1);  // one that joins by it
  ASSERT_TRUE(GoesOn({&first, &second}));

  Kill("two");
  EXPECT_TRUE(GoesOn({&first, &second}));
  Start({"two"}, rpc::kOneMore);
  EXPECT_TRUE(Within(kSoon, [&] { return AreWhole(directory); }));
  EXPECT_TRUE(GoesOn({&first, &second}));

  first.End();
  second.End();
  const auto pulled = (*reader)->Pull().Await();
  ASSERT_THAT(pulled, IsOk());
  const Tensor values = Tensor::Empty({kElements});
  pulled->CopyTo({values});
  EXPECT_THAT(
      values.ToVector<float>(),
      Each(static_cast<float>(first.acknowledged() + second.acknowledged())));
}

// Whoever made the servers cannot close them any more.
TEST_F(KilledDirectory, LetsGoOfTheShardsWhenNoTrainerIsLeft) {
  const auto reader = ServerClient::Join(*agent_, directory_, std::nullopt);
  ASSERT_THAT(reader, IsOk());
  auto pusher = std::make_unique<Pusher>(*agent_, directory_, 0);
  ASSERT_TRUE(GoesOn({pusher.get()}));
  Kill("maker");
  EXPECT_TRUE(Within(
      kSoon, [&] { return (*reader)->directory().owner().name == "one"; }));
  EXPECT_TRUE(GoesOn({pusher.get()}));
  const RRef<ServerDirectory> directory = (*reader)->directory();
  EXPECT_THAT(directory.Async<&ServerDirectory::Locate>(0, 0).Await(), IsOk());
  pusher.reset();
  EXPECT_TRUE(Within(kSoon, [&] {
    return absl::IsNotFound(
        directory.Async<&ServerDirectory::Locate>(0, 0).Await().status());
  }));
}

}  // namespace
}  // namespace baton::dist
