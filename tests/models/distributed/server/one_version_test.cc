// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/within.h"

// Pulls of one version from three shards.
namespace baton::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;
using testing::RunBeside;
using testing::ServerTest;
using testing::Within;

// A trainer of its own that pushes to one shard at a time; it adds one to every
// value.
class ShardByShard {
 public:
  ShardByShard(std::vector<RRef<ServerShard>> shards, uint64_t id)
      : shards_(std::move(shards)), id_(TrainerId{id}) {
    for (const auto& shard : shards_) {
      EXPECT_THAT(
          shard.Async<&ServerShard::Join>(id_, static_cast<int64_t>(1000 + id))
              .Await(),
          IsOk());
    }
  }

  Future<ExchangeReply> Push(size_t shard, int64_t sequence) const {
    ExchangeRequest request{.trainer = id_, .sequence = sequence};
    request.gradients.dense = Tensor::Full({kElementsOfShard}, -1);
    return shards_[shard].Async<&ServerShard::Exchange>(request);
  }
  void Leave() const {
    for (const auto& shard : shards_)
      EXPECT_THAT(shard.Async<&ServerShard::Leave>(id_).Await(), IsOk());
  }
  // Where the shard is served after its server was lost.
  void MovedTo(size_t shard, const RRef<ServerShard>& primary) {
    shards_[shard] = primary;
  }

  static constexpr int64_t kElementsOfShard = 10'000;

 private:
  std::vector<RRef<ServerShard>> shards_;
  const TrainerId id_;
};

class OneVersion : public ServerTest,
                   public ::testing::WithParamInterface<Consistency> {
 protected:
  void Make(int trainers, bool backups = false) {
    ServerOptions options;
    options.mode = GetParam();
    options.staleness = 3;
    options.rule = ops::SgdRule{.lr = 1};
    options.trainers = trainers;
    options.average = false;
    options.part_bytes = 400;
    options.backups = backups;
    options.tables = {
        {.name = "rows", .width = 4, .rule = ops::SgdRule{.lr = 1}}};
    ServerTest::Make(
        options, {{"x", Tensor::Zeros({3 * ShardByShard::kElementsOfShard})}},
        {"bob", "carol", "dave"});
  }
  std::vector<RRef<ServerShard>> Shards() {
    return {Primary(0), Primary(1), Primary(2)};
  }
  static Tensor Keys() { return Tensor::Arange(200); }
  Trade Push(double amount) const {
    return {.gradients = Filled(-amount),
            .row_gradients = {{.table = 0,
                               .keys = Keys(),
                               .gradients = Tensor::Full({200, 4}, -amount)}}};
  }
  static Trade Pull(std::optional<bool> one_version) {
    return {.push = false,
            .values = true,
            .rows = {{.table = 0, .keys = Keys()}},
            .one_version = one_version};
  }
  // Whether some values or rows have a push that others do not have.
  static bool IsTorn(const Pulled& pulled) {
    std::vector<Tensor> all = pulled.rows;
    for (const ExchangeReply& shard : pulled.shards)
      all.push_back(shard.values);
    const float first = all[0].ToVector<float>()[0];
    return std::any_of(all.begin(), all.end(), [&](const Tensor& tensor) {
      const auto values = tensor.ToVector<float>();
      return std::any_of(values.begin(), values.end(),
                         [&](float value) { return value != first; });
    });
  }
  static std::vector<int64_t> Versions(const Pulled& pulled) {
    std::vector<int64_t> versions;
    for (const ExchangeReply& shard : pulled.shards)
      versions.push_back(shard.version);
    return versions;
  }
  // The calls of ServerShard::Hold that a server has had.
  int64_t HoldsAt(const std::string& server) {
    int64_t holds = 0;
    for (const auto& method : cluster_.at(server).GetDebugInfo().methods)
      if (method.method.find("Hold") != std::string::npos)
        holds += static_cast<int64_t>(method.calls);
    return holds;
  }
  // Runs two trainers, each push of which adds other amounts, until `beside`
  // returns: values are equal only if they have the same pushes of both.
  void Train(const std::function<void()>& beside) {
    constexpr int kMost = 4000;  // f32 has their sums exactly
    std::atomic<bool> over{false};
    const auto train = [&](int64_t rank, double amount) {
      const auto client = Join(rank);
      for (int i = 0; i < kMost && !over; ++i)
        ASSERT_THAT(client->Do(Push(amount)).Await(), IsOk());
    };
    RunBeside({[&] { train(0, 1); }, [&] { train(1, kMost); },
               [&] {
                 beside();
                 over = true;
               }});
  }
};

TEST_P(OneVersion, NoReaderSeesAPushInPart) {
  Make(2);
  Train([&] {
    const auto read = [&](const std::string& worker) {
      const auto reader = Join(std::nullopt, worker);
      int64_t first = 0, last = 0;
      for (int i = 0; i < 25; ++i) {
        const auto pulled = reader->Do(Pull(true)).Await();
        ASSERT_THAT(pulled, IsOk());
        EXPECT_FALSE(IsTorn(*pulled));
        for (const int64_t version : Versions(*pulled))
          EXPECT_EQ(version, pulled->Version());
        last = pulled->Version();
        if (i == 0) first = last;
      }
      EXPECT_GT(last, first);
    };
    RunBeside({[&] { read("alice"); }, [&] { read("dave"); }});
  });
}

TEST_P(OneVersion, APullWaitsForAPushThatOneShardHas) {
  Make(1);
  const ShardByShard trainer(Shards(), 40);
  const auto reader = Join(std::nullopt);
  ASSERT_THAT(trainer.Push(0, 1).Await(), IsOk());
  const auto torn = reader->Do(Pull(false)).Await();
  ASSERT_THAT(torn, IsOk());
  EXPECT_TRUE(IsTorn(*torn));
  EXPECT_THAT(Versions(*torn), ElementsAre(1, 0, 0));
  const Future<Pulled> whole =
      reader->Do({.push = false, .values = true, .one_version = true});
  ASSERT_THAT(trainer.Push(1, 1).Await(), IsOk());
  EXPECT_FALSE(whole.Await(milliseconds(50)).ok());
  ASSERT_THAT(trainer.Push(2, 1).Await(), IsOk());
  const auto pulled = whole.Await(seconds(20));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_FALSE(IsTorn(*pulled));
  EXPECT_THAT(Versions(*pulled), ElementsAre(1, 1, 1));
}

TEST_P(OneVersion, APullThatFindsNoVersionIsAbortedAtItsDeadline) {
  Make(1);
  const ShardByShard trainer(Shards(), 40);
  const auto reader =
      ServerClient::Join(cluster_.alice(), servers_->directory(), std::nullopt,
                         {.timeout = milliseconds(300)});
  ASSERT_THAT(reader, IsOk());
  ASSERT_THAT(trainer.Push(1, 1).Await(), IsOk());
  EXPECT_THAT(
      (*reader)->Do(Pull(true)).Await(kNoLimit),
      Fails(absl::StatusCode::kAborted,
            "shard 0 has version 0, shard 1 has version 1, shard 2 has"));
}

// It is never in the others.
TEST_P(OneVersion, NobodyWaitsForAPushOfATrainerThatHasLeft) {
  Make(1);
  const ShardByShard trainer(Shards(), 40);
  const auto reader = Join(std::nullopt);
  ASSERT_THAT(trainer.Push(0, 1).Await(), IsOk());
  const Future<Pulled> waits = reader->Do(Pull(true));
  EXPECT_FALSE(waits.Await(milliseconds(50)).ok());
  trainer.Leave();
  const auto pulled = waits.Await(seconds(20));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(Versions(*pulled), ElementsAre(1, 0, 0));
  EXPECT_EQ(pulled->Version(), 1);
}

TEST_P(OneVersion, APullFindsTheServerThatTakesOverMeanwhile) {
  Make(1, /*backups=*/true);
  ShardByShard trainer(Shards(), 40);
  const auto reader = Join(std::nullopt);
  ASSERT_THAT(trainer.Push(0, 1).Await(), IsOk());
  const Future<Pulled> whole =
      reader->Do({.push = false, .values = true, .one_version = true});
  EXPECT_FALSE(whole.Await(milliseconds(50)).ok());
  cluster_.Kill("carol");
  ASSERT_TRUE(Within(seconds(20), [&] {
    return reader->EpochOf(1) == 2 && ReportOf(1).serves;
  }));
  trainer.MovedTo(1, Primary(1));
  for (const size_t shard : {1, 2})
    ASSERT_THAT(trainer.Push(shard, 1).Await(), IsOk());
  const auto pulled = whole.Await(seconds(20));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_FALSE(IsTorn(*pulled));
  EXPECT_EQ(pulled->Version(), 1);
}

TEST_P(OneVersion, NoReaderSeesAPushInPartWhileAServerIsLost) {
  Make(2, /*backups=*/true);
  Train([&] {
    std::atomic<int> pulls{0};
    std::atomic<bool> over{false};
    const auto read = [&] {
      const auto reader = Join(std::nullopt);
      while (!over) {
        const auto pulled = reader->Do(Pull(true)).Await();
        ASSERT_THAT(pulled, IsOk());
        EXPECT_FALSE(IsTorn(*pulled));
        ++pulls;
      }
      EXPECT_EQ(reader->EpochOf(1), 2);
    };
    const auto more = [&](int before) {
      EXPECT_TRUE(Within(seconds(30), [&] { return pulls > before + 4; }));
    };
    RunBeside({read, [&] {
                 more(0);
                 cluster_.Kill("carol");
                 more(pulls);
                 over = true;
               }});
  });
}

TEST_P(OneVersion, PushesAreHeldForSoLongAtMost) {
  Make(1);
  const ShardByShard trainer(Shards(), 40);
  ASSERT_THAT(trainer.Push(0, 1).Await(), IsOk());
  const auto held = Primary(0).Async<&ServerShard::Hold>(uint64_t{7}).Await();
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->version, 1);
  const Future<ExchangeReply> next = trainer.Push(0, 2);
  const Future<ExchangeReply> repeated = trainer.Push(0, 2);
  EXPECT_FALSE(next.Await(milliseconds(50)).ok());
  EXPECT_THAT(trainer.Push(0, 1).Await(), IsOk());  // it is there already
  EXPECT_EQ(ReportOf(0).version, 1);
  EXPECT_THAT(next.Await(seconds(20)), IsOk());
  EXPECT_THAT(repeated.Await(seconds(20)), IsOk());
  EXPECT_EQ(ReportOf(0).version, 2);
}

INSTANTIATE_TEST_SUITE_P(Modes, OneVersion,
                         ::testing::Values(Consistency::kBulkSynchronous,
                                           Consistency::kBoundedStale,
                                           Consistency::kAsynchronous),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

class OneVersionByRounds : public OneVersion {};
INSTANTIATE_TEST_SUITE_P(Bsp, OneVersionByRounds,
                         ::testing::Values(Consistency::kBulkSynchronous));

TEST_P(OneVersionByRounds, TrainersHaveItWithNoMessageMoreAndReadersByDefault) {
  Make(2);
  Train([&] {
    const auto trainer = Join(2);
    for (int i = 0; i < 20; ++i) {
      Trade trade = Push(0);
      trade.values = true;
      trade.rows = {{.table = 0, .keys = Keys()}};
      const auto pulled = trainer->Do(std::move(trade)).Await();
      ASSERT_THAT(pulled, IsOk());
      EXPECT_FALSE(IsTorn(*pulled));
    }
    for (const char* server : {"bob", "carol", "dave"})
      EXPECT_EQ(HoldsAt(server), 0);
    EXPECT_THAT(trainer->Leave(), IsOk());
    const auto reader = Join(std::nullopt);
    for (int i = 0; i < 20; ++i) {
      const auto pulled = reader->Do(Pull(std::nullopt)).Await();
      ASSERT_THAT(pulled, IsOk());
      EXPECT_FALSE(IsTorn(*pulled));
    }
  });
}

// Its first push is in the same round at all shards, though one has begun the
// round in which it joins, and others have not.
TEST_P(OneVersionByRounds, ANewcomerStartsInOneRoundAtAllShards) {
  Make(2);
  const ShardByShard first(Shards(), 40), second(Shards(), 41);
  ASSERT_THAT(first.Push(0, 1).Await(), IsOk());
  const auto newcomer = Join(7);
  const Future<Pulled> its = newcomer->PushPull(Filled(-1));
  for (const size_t shard : {1, 2})
    ASSERT_THAT(first.Push(shard, 1).Await(), IsOk());
  for (const size_t shard : {0, 1, 2})
    ASSERT_THAT(second.Push(shard, 1).Await(), IsOk());
  for (const int shard : {0, 1, 2})
    EXPECT_TRUE(
        Within(seconds(20), [&] { return ReportOf(shard).version == 1; }));
  EXPECT_FALSE(its.ready());
  for (const ShardByShard* trainer : {&first, &second})
    for (const size_t shard : {0, 1, 2})
      ASSERT_THAT(trainer->Push(shard, 2).Await(), IsOk());
  const auto pulled = its.Await(seconds(20));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_FALSE(IsTorn(*pulled));
  EXPECT_THAT(Versions(*pulled), ElementsAre(2, 2, 2));
  EXPECT_EQ(pulled->shards[0].values.ToVector<float>()[0], 5);
}

}  // namespace
}  // namespace baton::dist
