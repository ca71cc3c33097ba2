// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/within.h"

// What becomes of shards whose servers are lost.
namespace baton::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::DirectoryToGive;
using ::testing::Each;
using testing::Fails;
using testing::GiveDirectory;
using testing::IsOk;
using testing::ServerTest;
using testing::Within;

ServerOptions Replicated(Consistency mode) {
  ServerOptions options;
  options.mode = mode;
  options.rule = ops::SgdRule{.lr = 1};
  options.backups = true;
  options.part_bytes = 64;
  options.tables = {{.name = "rows",
                     .width = 2,
                     .start = RowStart::kZero,
                     .scale = 0,
                     .seed = 0,
                     .limit = 4,
                     .rule = ops::SgdRule{.lr = 1}},
                    {.name = "fixed",
                     .width = 2,
                     .rows = 64,
                     .rule = ops::AdagradRule{.lr = 1}}};
  return options;
}

// Pushes one to every value, to three rows of a table that keeps but four, and
// to the same of one that keeps all.
Trade PushOf(const std::vector<Tensor>& gradients, int64_t first) {
  Trade trade{.gradients = gradients};
  for (const int32_t table : {0, 1}) {
    trade.row_gradients.push_back(
        {.table = table,
         .keys = Tensor::From<int64_t>({first, first + 1, first + 2}),
         .gradients = Tensor::Full({3, 2}, -1)});
  }
  trade.rows = {{.table = 0, .keys = Tensor::From<int64_t>({1, 2})}};
  return trade;
}

class TakeoverTest : public ServerTest,
                     public ::testing::WithParamInterface<Consistency> {
 protected:
  // Of both tables.
  static std::vector<std::vector<float>> Rows(ServerClient& client) {
    const Tensor keys = Tensor::From<int64_t>({0, 1, 2, 3, 4, 5, 6, 7});
    std::vector<std::vector<float>> rows;
    for (const int32_t table : {0, 1}) {
      const auto pulled = client.PullRows(table, keys).Await();
      EXPECT_THAT(pulled, IsOk());
      if (pulled.ok()) rows.push_back(pulled->ToVector<float>());
    }
    return rows;
  }
};

// Servers bob and carol, each with one shard and the backup of the other's.
TEST_P(TakeoverTest, TheBackupHasAllThatThePrimaryHad) {
  Make(Replicated(GetParam()), {{"x", Tensor::Zeros({100})}});
  const auto client = Join(0);
  for (int64_t i = 0; i < 5; ++i)
    ASSERT_THAT(client->Do(PushOf(Filled(-1), i)).Await(), IsOk());
  const auto rows = Rows(*client);
  EXPECT_TRUE(ReportOf(0).has_backup);
  cluster_.Kill("bob");
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(5));
  EXPECT_EQ(Rows(*client), rows);
  ASSERT_THAT(client->Do(PushOf(Filled(-1), 5)).Await(), IsOk());
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(6));
  for (const int32_t shard : {0, 1}) {
    // The other shard's primary hears of its backup's end by its lease at last.
    EXPECT_TRUE(
        Within(seconds(20), [&] { return ReportOf(shard).epoch == 2; }));
    EXPECT_TRUE(ReportOf(shard).serves);
    EXPECT_FALSE(ReportOf(shard).has_backup);
    EXPECT_EQ(ReportOf(shard).version, 6);
  }
}

TEST_P(TakeoverTest, EveryPushCountsOnceWhileAServerIsLost) {
  constexpr int kPushes = 40;
  ServerOptions options = Replicated(GetParam());
  options.trainers = 2;
  options.average = false;
  Make(options, {{"x", Tensor::Zeros({100})}});
  std::atomic<int> pushed{0};
  const auto train = [&](int64_t rank) {
    const auto client = Join(rank);
    for (int64_t i = 0; i < kPushes; ++i) {
      ASSERT_THAT(client->Do(PushOf(Filled(-1), i)).Await(), IsOk()) << i;
      ++pushed;
    }
  };
  testing::RunBeside(
      {[&] { train(0); }, [&] { train(1); },
       [&] {
         EXPECT_TRUE(Within(seconds(20), [&] { return pushed > kPushes / 2; }));
         cluster_.Kill("carol");
       }});
  const auto reader = Join(std::nullopt);
  EXPECT_THAT(Read(*reader)[0].ToVector<float>(), Each(2 * kPushes));
}

// Three servers: whichever is lost, another one is free to be the next backup.
TEST_P(TakeoverTest, ALostReplicaIsMadeAgainAtAnotherServer) {
  ServerOptions options = Replicated(GetParam());
  options.rule = ops::SgdRule{.lr = 1, .momentum = 0.5};
  Make(options, {{"x", Tensor::Zeros({100})}}, {"bob", "carol", "dave"});
  const auto client = Join(0);
  const auto push = [&](int64_t first) {
    ASSERT_THAT(client->Do(PushOf(Filled(-1), first)).Await(), IsOk());
  };
  push(0);
  push(1);
  cluster_.Kill("bob");
  push(2);
  for (const int32_t shard : {0, 1, 2})
    EXPECT_TRUE(
        Within(seconds(20), [&] { return ReportOf(shard).has_backup; }));
  push(3);
  const auto rows = Rows(*client);
  cluster_.Kill("carol");
  // Velocities 1, 1.5, 1.75, 1.875.
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(6.125));
  EXPECT_EQ(Rows(*client), rows);
  push(4);
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(8.0625));
}

TEST_P(TakeoverTest, AClientWithoutCallsLooksForALostServerAtOnce) {
  Make(Replicated(GetParam()), {{"x", Tensor::Zeros({100})}});
  const auto client = Join(std::nullopt);
  EXPECT_EQ(client->EpochOf(0), 0);
  Read(*client);
  EXPECT_EQ(client->EpochOf(0), 1);
  cluster_.Kill("bob");
  EXPECT_TRUE(Within(seconds(20), [&] { return client->EpochOf(0) == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Modes, TakeoverTest,
                         ::testing::Values(Consistency::kBulkSynchronous,
                                           Consistency::kBoundedStale,
                                           Consistency::kAsynchronous),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

TEST_F(ServerTest, PushesThatWaitForEachOtherEndByTheirTimeout) {
  constexpr milliseconds kTimeout{300};
  Make({.mode = Consistency::kAsynchronous}, {{"x", Tensor::Zeros({100})}},
       {"bob"});
  const auto client = dist::ServerClient::Join(
      cluster_.alice(), servers_->directory(), 0, {.timeout = kTimeout});
  ASSERT_THAT(client, IsOk());
  cluster_.Kill("bob");
  const auto begun = steady_clock::now();
  std::vector<Future<dist::Pulled>> pushes;
  for (int i = 0; i < 20; ++i) pushes.push_back((*client)->Push(Filled(1)));
  for (const auto& push : pushes) EXPECT_FALSE(push.Await(kNoLimit).ok());
  EXPECT_LT(steady_clock::now() - begun, 10 * kTimeout);
}

TEST_F(ServerTest, ServersAreFreedWhereTheMakerIsOneOfThem) {
  Make({.mode = Consistency::kAsynchronous, .backups = true},
       {{"x", Tensor::Zeros({100})}}, {"alice", "bob"});
  DirectoryToGive() = {};
  servers_ = nullptr;
  EXPECT_TRUE(Within(seconds(20), [&] {
    return cluster_.alice().GetDebugInfo().objects.empty() &&
           cluster_.at("bob").GetDebugInfo().objects.empty();
  }));
}

TEST_F(ServerTest, ABackupTakesNothingOfAnotherEpoch) {
  Make(Replicated(Consistency::kAsynchronous), {{"x", Tensor::Zeros({8})}});
  const auto made =
      rpc::Create<ServerShard>(
          cluster_.alice(), "dave",
          ShardSpec{.options = Replicated(Consistency::kAsynchronous),
                    .shard = 0,
                    .shards = 1,
                    .image = {.values = Tensor::Zeros({8})}},
          DirectoryLine{servers_->directory()})
          .Await();
  ASSERT_THAT(made, IsOk());
  const RRef<ServerShard>& backup = *made;
  ASSERT_THAT(
      backup.Async<&ServerShard::Follow>(Primary(0).owner(), 1, 0).Await(),
      IsOk());
  const ShardUpdate join{.kind = ShardUpdate::Kind::kJoin,
                         .trainer = TrainerId{1}};
  EXPECT_THAT(backup.Async<&ServerShard::Replicate>(1, join).Await(), IsOk());
  EXPECT_THAT(backup.Async<&ServerShard::Replicate>(1, join).Await(), IsOk());
  EXPECT_EQ(backup.Async<&ServerShard::Report>().Await()->updates, 1);
  EXPECT_THAT(backup.Async<&ServerShard::Replicate>(0, join).Await(),
              Fails(absl::StatusCode::kAborted, "epoch 1"));
  EXPECT_THAT(backup.Async<&ServerShard::Exchange>(ExchangeRequest{}).Await(),
              Fails(absl::StatusCode::kUnavailable, "its backup"));
}

// News of workers that have joined may reach one server before another.
TEST_F(ServerTest, ANewPrimaryKeepsATrainerOfWhichItHearsOnlyLater) {
  const ServerOptions options = Replicated(Consistency::kBulkSynchronous);
  Make(options, {{"x", Tensor::Zeros({8})}});
  rpc::Agent& alice = cluster_.alice();
  const auto directory = ServerDirectory::MakeAt(
      alice, *servers_->directory().Async<&ServerDirectory::Served>().Await());
  std::vector<RRef<ServerShard>> replicas;
  for (const char* const server : {"bob", "carol"}) {
    const ShardSpec spec{.options = options,
                         .image = {.values = Tensor::Zeros({8})}};
    auto made =
        rpc::Create<ServerShard>(
            alice, server, spec,
            DirectoryLine{RRef<ServerDirectory>::Make(alice, directory)})
            .Await();
    ASSERT_THAT(made, IsOk());
    replicas.push_back(*std::move(made));
  }
  const RRef<ServerShard>& backup = replicas[1];
  ASSERT_THAT(
      backup.Async<&ServerShard::Follow>(replicas[0].owner(), 1, 0).Await(),
      IsOk());
  ASSERT_THAT(directory->Set({{.primary = replicas[0], .backup = {backup}},
                              {.primary = Primary(1)}}),
              IsOk());
  const std::vector<std::string> trainers = {"erin", "fred"};
  for (int64_t i = 0; i < 2; ++i) {
    ShardUpdate join{.index = i,
                     .kind = ShardUpdate::Kind::kJoin,
                     .trainer = TrainerId{static_cast<uint64_t>(i + 1)}};
    join.joining.worker = trainers[static_cast<size_t>(i)];
    join.joining.incarnation = 80;
    ASSERT_THAT(backup.Async<&ServerShard::Replicate>(1, join).Await(), IsOk());
  }
  const auto report = [&] {
    return *backup.Async<&ServerShard::Report>().Await();
  };
  cluster_.Kill("bob");
  ASSERT_TRUE(Within(seconds(20), [&] { return report().serves; }));
  rpc::WorkerInfo erin;
  erin.name = "erin";
  erin.rank = rpc::Rank{8};
  erin.incarnation = 80;
  cluster_.at("carol").AddPeer(erin);
  EXPECT_EQ(report().trainers, 2);
  // Of the other one it never hears.
  EXPECT_TRUE(Within(seconds(20), [&] { return report().trainers < 2; }));
  EXPECT_EQ(report().trainers, 1);
  cluster_.at("carol").RemovePeer("erin");
  EXPECT_TRUE(Within(seconds(20), [&] { return report().trainers == 0; }));
  directory->Close();
}

// As one that was cut off from its backup, which serves meanwhile.
TEST_F(ServerTest, APrimaryThatIsNoneForTheDirectoryServesNobody) {
  Make(Replicated(Consistency::kAsynchronous), {{"x", Tensor::Zeros({8})}});
  const RRef<ServerDirectory>& directory = servers_->directory();
  const RRef<ServerShard> primary = Primary(0);
  EXPECT_EQ(*directory.Async<&ServerDirectory::Promote>(0, 1).Await(), 2);
  EXPECT_FALSE(Primary(0) == primary);
  EXPECT_THAT(directory.Async<&ServerDirectory::GoAlone>(0, 1).Await(),
              Fails(absl::StatusCode::kAborted, "epoch 2"));
  EXPECT_THAT(directory.Async<&ServerDirectory::Promote>(0, 2).Await(),
              Fails(absl::StatusCode::kAborted, "no backup"));
  cluster_.Kill("carol");
  EXPECT_TRUE(Within(seconds(20), [&] {
    return !primary.Async<&ServerShard::Report>().Await()->serves;
  }));
  ExchangeRequest read;
  read.values = true;
  EXPECT_THAT(primary.Async<&ServerShard::Exchange>(read).Await(),
              Fails(absl::StatusCode::kUnavailable, "epoch 2"));
}
// As one that was stopped, and finds its peers lost one after the other when it
// goes on.
TEST_F(ServerTest, AServerThatIsCutOffFromAllOthersDecidesNothing) {
  Make(Replicated(Consistency::kAsynchronous), {{"x", Tensor::Zeros({100})}});
  const auto client = Join(0, "dave");
  ASSERT_THAT(client->Do(PushOf(Filled(-1), 0)).Await(), IsOk());
  rpc::Agent& bob = cluster_.at("bob");
  {
    const auto given = bob.Async<&GiveDirectory>("alice").Await();
    ASSERT_THAT(given, IsOk());
    const DirectoryLine line = *given->Async<&ServerDirectory::Line>().Await();
    const RRef<ServerDirectory>& at_bob = line[1];
    ASSERT_TRUE(at_bob.is_owner());
    const RRef<ServerShard> shard_at_bob =
        *at_bob.Async<&ServerDirectory::Locate>(0, 0).Await()->primary;
    for (const char* const name : {"alice", "carol", "dave"}) {
      bob.RemovePeer(name);
      cluster_.at(name).RemovePeer("bob");
    }
    EXPECT_TRUE(Within(seconds(20), [&] {
      const auto place =
          servers_->directory().Async<&ServerDirectory::Locate>(0, 0).Await();
      return place.ok() && place->epoch == 2;
    }));
    for (int i = 0; i < 5; ++i)
      ASSERT_THAT(client->Do(PushOf(Filled(-1), i)).Await(), IsOk());
    EXPECT_THAT(at_bob.Async<&ServerDirectory::GoAlone>(0, 1).Await(),
                Fails(absl::StatusCode::kUnavailable, ""));
    EXPECT_EQ(shard_at_bob.Async<&ServerShard::Report>().Await()->epoch, 1);
  }
  EXPECT_EQ(Primary(0).owner().name, "carol");
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(6));
  cluster_.Kill("bob");
}

}  // namespace
}  // namespace baton::dist
