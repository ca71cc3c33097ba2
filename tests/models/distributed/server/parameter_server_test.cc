// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/parameter_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/ops/multi_tensor.h"
#include "core/ops/optimizer.h"
#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/steps_of.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::Fails;
using ::testing::Ge;
using testing::IsOk;
using ::testing::Le;
using testing::RunBeside;
using testing::ServerTest;
using testing::StepsOf;

ServerOptions With(Consistency mode, const ops::StepRule& rule,
                   int trainers = 1) {
  ServerOptions options;
  options.mode = mode;
  options.rule = rule;
  options.trainers = trainers;
  options.part_bytes = 128;
  return options;
}

std::vector<std::vector<float>> Elements(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> elements;
  for (const Tensor& tensor : tensors)
    elements.push_back(tensor.ToVector<float>());
  return elements;
}

// One process that accumulates the gradients of all, in their order.
class OneProcess {
 public:
  OneProcess(const ops::StepRule& rule,
             const std::vector<std::pair<std::string, Tensor>>& values)
      : rule_(rule) {
    for (const auto& [name, value] : values) {
      ops::StepTarget target{.value = test::Put(value.Clone())};
      for (const auto& slot : UsedSlots(rule)) {
        target.state.push_back(
            slot.name == nullptr
                ? Tensor()
                : test::Put(Tensor::Full(value.shape(), slot.initial)));
      }
      targets_.push_back(target);
    }
  }
  void Step(const std::vector<std::vector<Tensor>>& gradients) {
    ++steps_;
    for (size_t key = 0; key < targets_.size(); ++key) {
      const Tensor sum = test::Put(gradients[0][key].Clone());
      for (size_t i = 1; i < gradients.size(); ++i)
        ops::AddIntoMany({sum}, {test::Put(gradients[i][key])});
      targets_[key].grad = sum;
      targets_[key].step = steps_;
      targets_[key].scale = test::Put(Tensor::Scalar(
          1.0 / static_cast<double>(gradients.size()), DType::kF64));
    }
    ops::OptimizerStep({{.targets = targets_, .rule = rule_}});
  }
  std::vector<Tensor> values() const {
    std::vector<Tensor> values;
    for (const auto& target : targets_) values.push_back(target.value);
    return values;
  }

 private:
  const ops::StepRule rule_;
  std::vector<ops::StepTarget> targets_;
  int64_t steps_ = 0;
};

TEST_F(ServerTest, ARoundHasTheBitsOfOneProcess) {
  Generator generator(3);
  const std::vector<std::pair<std::string, Tensor>> values = {
      {"conv", RandNormal({4, 3, 5, 5}, generator)},
      {"bias", RandNormal({7}, generator)},
      {"fc", RandNormal({31, 17}, generator)}};
  for (const ops::StepRule& rule :
       {ops::StepRule(ops::SgdRule{.lr = 0.1, .momentum = 0.9}),
        ops::StepRule(ops::AdamRule{.lr = 0.1}),
        ops::StepRule(ops::AdagradRule{.lr = 0.1})}) {
    constexpr size_t kTrainers = 3, kRounds = 4;
    Make(With(Consistency::kBulkSynchronous, rule, kTrainers), values);
    std::vector<std::vector<std::vector<Tensor>>> pushed(kRounds);
    for (auto& round : pushed)
      for (size_t i = 0; i < kTrainers; ++i)
        round.push_back(Gradients(generator));
    std::vector<std::function<void()>> trainers;
    for (size_t i = 0; i < kTrainers; ++i) {
      trainers.push_back([&, i] {
        // In another order than that of their ranks.
        const auto client = Join(static_cast<int64_t>(kTrainers - i),
                                 i == 1 ? "dave" : "alice");
        for (size_t round = 0; round < kRounds; ++round) {
          const auto pulled =
              client->PushPull(pushed[round][kTrainers - 1 - i]).Await();
          ASSERT_THAT(pulled, IsOk());
          for (const int64_t version : pulled->Versions(2))
            EXPECT_EQ(version, static_cast<int64_t>(round) + 1);
        }
      });
    }
    RunBeside(trainers);
    OneProcess one(rule, values);
    for (const auto& round : pushed) one.Step(round);
    EXPECT_EQ(Elements(Read(*Join(std::nullopt))), Elements(one.values()));
  }
}

TEST_F(ServerTest, TrainersThatAreLostAndComeDoNotStallARound) {
  Make(With(Consistency::kBulkSynchronous, ops::SgdRule{.lr = 1}, 2),
       {{"x", Tensor::Zeros({40})}});
  const auto first = Join(0, "alice");
  const auto second = Join(1, "dave");
  RunBeside(
      {[&] { EXPECT_THAT(first->PushPull(Filled(-1)).Await(), IsOk()); },
       [&] { EXPECT_THAT(second->PushPull(Filled(-3)).Await(), IsOk()); }});
  EXPECT_THAT(Read(*first)[0].ToVector<float>(), Each(2));  // the mean
  const Future<Pulled> waits = first->PushPull(Filled(-1));
  cluster_.Kill("dave");
  ASSERT_THAT(waits.Await(), IsOk());
  EXPECT_THAT(Read(*first)[0].ToVector<float>(), Each(3));  // of one
  // A newcomer while a round is open counts from the next one on.
  const auto third = Join(2);
  RunBeside(
      {[&] { EXPECT_THAT(first->PushPull(Filled(-1)).Await(), IsOk()); },
       [&] { EXPECT_THAT(third->PushPull(Filled(-3)).Await(), IsOk()); }});
  EXPECT_THAT(Read(*first)[0].ToVector<float>(), Each(5));
  EXPECT_THAT(third->Leave(), IsOk());
  EXPECT_THAT(first->PushPull(Filled(-1)).Await(), IsOk());
  // Its four pushes and those of the third, whose worker it shares.
  EXPECT_EQ(StepsOf(cluster_.at("alice")), "5");
  EXPECT_THAT(third->Push(Filled(-1)).Await(),
              Fails(absl::StatusCode::kFailedPrecondition, "only pulls"));
}

TEST_F(ServerTest, ATrainerThatIsLostBeforeItJoinsDoesNotStallARound) {
  ServerOptions options =
      With(Consistency::kBulkSynchronous, ops::SgdRule{.lr = 1}, 2);
  options.trainer_workers = {cluster_.alice().self()};
  EXPECT_THAT(ParameterServers::Make(cluster_.alice(), {"bob"}, options,
                                     {{"x", Tensor::Zeros({40})}}),
              Fails(absl::StatusCode::kInvalidArgument, "trainer_workers"));
  options.trainer_workers = {cluster_.alice().self(),
                             cluster_.at("dave").self()};
  Make(options, {{"x", Tensor::Zeros({40})}});
  const auto client = Join(0);
  const Future<Pulled> waits = client->PushPull(Filled(-1));
  EXPECT_FALSE(waits.Await(std::chrono::milliseconds(50)).ok());
  cluster_.Kill("dave");
  for (const char* const server : {"bob", "carol"})
    cluster_.at(server).RemovePeer("dave");  // as a rendezvous tells them
  ASSERT_THAT(waits.Await(std::chrono::seconds(20)), IsOk());
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(1));
}

// As one that was killed and started again before the servers were made: who
// comes there joins later, if at all.
TEST_F(ServerTest, ATrainerWhoseWorkerIsAnotherProcessByNowDoesNotStallARound) {
  ServerOptions options =
      With(Consistency::kBulkSynchronous, ops::SgdRule{.lr = 1}, 2);
  rpc::WorkerInfo former = cluster_.at("dave").self();
  ++former.incarnation;
  options.trainer_workers = {cluster_.alice().self(), former};
  Make(options, {{"x", Tensor::Zeros({40})}});
  const auto client = Join(0);
  ASSERT_THAT(client->PushPull(Filled(-1)).Await(std::chrono::seconds(20)),
              IsOk());
  EXPECT_THAT(Read(*client)[0].ToVector<float>(), Each(1));
}

TEST_F(ServerTest, ServersKnowWhoElseStepsWithTheirCores) {
  Make({}, {{"w", Tensor::Ones({8})}}, {"bob"});
  EXPECT_EQ(ReportOf(0).servers_here, 1);
  Make({}, {{"w", Tensor::Ones({8})}});
  EXPECT_EQ(ReportOf(0).servers_here, 2);
  EXPECT_EQ(ReportOf(1).servers_here, 2);
}

TEST_F(ServerTest, StalenessIsBoundedAndReachedBesideAStraggler) {
  constexpr int64_t kStaleness = 2, kPushes = 12;
  ServerOptions options =
      With(Consistency::kBoundedStale, ops::SgdRule{.lr = 1}, 3);
  options.staleness = kStaleness;
  Make(options, {{"x", Tensor::Zeros({40})}});
  const auto straggler = Join(9);
  std::atomic<int64_t> ahead{0};
  std::atomic<int64_t> done{0};
  const auto fast = [&](int64_t rank) {
    const auto client = Join(rank);
    for (int64_t i = 0; i < kPushes; ++i) {
      const auto pulled = client->PushPull(Filled(-1)).Await();
      ASSERT_THAT(pulled, IsOk());
      for (const ExchangeReply& shard : pulled->shards) {
        EXPECT_LE(shard.clock - shard.slowest, kStaleness);
        if (shard.clock - shard.slowest == kStaleness) ++ahead;
      }
    }
    ++done;
  };
  RunBeside({[&] { fast(0); }, [&] { fast(1); },
             [&] {
               for (int64_t i = 0; i < kPushes; ++i) {
                 // The others get as far as they may, and no further.
                 const int64_t most =
                     std::min(2 * (i + kStaleness + 1), 2 * kPushes) + i;
                 EXPECT_TRUE(testing::Within(std::chrono::seconds(20), [&] {
                   return ReportOf(0).version == most &&
                          ReportOf(1).version == most;
                 })) << i;
                 EXPECT_THAT(straggler->Push(Filled(-1)).Await(), IsOk());
               }
             }});
  EXPECT_EQ(done, 2);
  EXPECT_GT(ahead, 0);
  EXPECT_THAT(Read(*straggler)[0].ToVector<float>(), Each(3 * kPushes));
}

TEST_F(ServerTest, AsynchronousPushesAllCountAndWaitForNobody) {
  constexpr int kTrainers = 3, kPushes = 20;
  Make(With(Consistency::kAsynchronous, ops::SgdRule{.lr = 1}, kTrainers),
       {{"x", Tensor::Zeros({50})}, {"y", Tensor::Zeros({3, 3})}});
  std::vector<std::function<void()>> trainers;
  for (int i = 0; i < kTrainers; ++i) {
    trainers.push_back([&, i] {
      const auto client = Join(i, i == 0 ? "dave" : "alice");
      for (int push = 0; push < kPushes * (i + 1); ++push)
        ASSERT_THAT(client->Push(Filled(-1)).Await(), IsOk());
    });
  }
  RunBeside(trainers);
  const auto reader = Join(std::nullopt);
  for (const Tensor& values : Read(*reader))
    EXPECT_THAT(values.ToVector<float>(), Each(kPushes * 6));
  EXPECT_THAT(reader->Push(Filled(1)).Await(),
              Fails(absl::StatusCode::kFailedPrecondition, "only pulls"));
}

// Every push adds one to every element and to every row: what a shard gives has
// one value in all of them, and it is the version.
bool IsTorn(const ExchangeReply& reply) {
  std::vector<Tensor> all = reply.rows;
  all.push_back(reply.values);
  return std::any_of(all.begin(), all.end(), [&](const Tensor& tensor) {
    const std::vector<float> values = tensor.ToVector<float>();
    return std::any_of(values.begin(), values.end(), [&](float x) {
      return x != static_cast<float>(reply.version);
    });
  });
}

class TornReads : public ServerTest {
 protected:
  static constexpr int64_t kRows = 500, kWidth = 24;
  TornReads() {
    ServerOptions options =
        With(Consistency::kAsynchronous, ops::SgdRule{.lr = 1});
    for (const char* name : {"words", "users"}) {
      options.tables.push_back({.name = name,
                                .width = kWidth,
                                .start = RowStart::kZero,
                                .rule = ops::SgdRule{.lr = 1}});
    }
    options.tables[1].rows = kRows;  // on the servers' device
    std::vector<int64_t> keys(kRows);
    std::iota(keys.begin(), keys.end(), 0);
    keys_ = Tensor::From(keys);
    Make(options, {{"x", Tensor::Zeros({100'000})}});
  }
  Trade Push() const {
    const Tensor gradients = Tensor::Full({kRows, kWidth}, -1);
    return {
        .gradients = Filled(-1),
        .row_gradients = {{.table = 0, .keys = keys_, .gradients = gradients},
                          {.table = 1, .keys = keys_, .gradients = gradients}}};
  }
  Trade Pull() const {
    return {.push = false,
            .values = true,
            .rows = {{.table = 0, .keys = keys_}, {.table = 1, .keys = keys_}}};
  }
  Tensor keys_;
};

TEST_F(TornReads, NoReaderSeesHalfAnUpdate) {
  std::atomic<bool> over{false};
  std::atomic<int> reads{0};
  const auto read = [&] {
    const auto reader = Join(std::nullopt, "dave");
    while (!over) {
      const auto pulled = reader->Do(Pull()).Await();
      ASSERT_THAT(pulled, IsOk());
      for (const ExchangeReply& shard : pulled->shards)
        EXPECT_FALSE(IsTorn(shard));
      ++reads;
    }
  };
  const auto write = [&](int rank) {
    const auto client = Join(rank);
    for (int i = 0; i < 25; ++i)
      ASSERT_THAT(client->Do(Push()).Await(), IsOk());
  };
  RunBeside({read, read, read, [&] {
               RunBeside({[&] { write(0); }, [&] { write(1); }});
               EXPECT_TRUE(testing::Within(std::chrono::seconds(20),
                                           [&] { return reads > 4; }));
               over = true;
             }});
}

// A shard that has half an update, and then all of it.
TEST_F(TornReads, AreSeenInValuesAndInRows) {
  const auto client = Join(0);
  const auto torn = [&] {
    const auto pulled = client->Do(Pull()).Await();
    EXPECT_THAT(pulled, IsOk());
    return std::count_if(pulled->shards.begin(), pulled->shards.end(), IsTorn);
  };
  // Adds one to everything, but not to a half of the values or of one table.
  const auto push = [&](size_t part, double gradient_of_half) {
    Trade trade = Push();
    Tensor& all = part == 0 ? trade.gradients.front()
                            : trade.row_gradients[part - 1].gradients;
    all = all.Clone();
    all.Slice(0, all.dim(0) / 2, all.dim(0)).Fill(gradient_of_half);
    ASSERT_THAT(client->Do(std::move(trade)).Await(), IsOk());
  };
  for (const size_t part : {0, 1, 2}) {
    push(part, 0);
    EXPECT_EQ(torn(), 2) << part;  // both shards
    push(part, -2);
    EXPECT_EQ(torn(), 0) << part;
  }
}

TEST_F(ServerTest, APushThatIsRepeatedCountsOnce) {
  Make(With(Consistency::kAsynchronous, ops::SgdRule{.lr = 1}),
       {{"x", Tensor::Zeros({8})}}, {"bob"});
  const RRef<ServerShard> shard = Primary(0);
  ASSERT_THAT(shard.Async<&ServerShard::Join>(TrainerId{40}, 0).Await(),
              IsOk());
  const auto push = [&](int64_t sequence) {
    ExchangeRequest request{.trainer = TrainerId{40}, .sequence = sequence};
    request.gradients.dense = Tensor::Full({8}, -1);
    request.values = true;
    return shard.Async<&ServerShard::Exchange>(request).Await();
  };
  for (const int64_t sequence : {1, 1, 2, 1, 2, 2, 3}) {
    const auto reply = push(sequence);
    ASSERT_THAT(reply, IsOk());
  }
  EXPECT_EQ(push(3)->version, 3);
  EXPECT_THAT(push(3)->values.ToVector<float>(), Each(3));
  EXPECT_THAT(shard.Async<&ServerShard::Join>(TrainerId{41}, 0).Await(),
              Fails(absl::StatusCode::kAlreadyExists, "rank 0"));
}

TEST_F(ServerTest, RowsAreSharedOutMadeSteppedAndReadBack) {
  ServerOptions options =
      With(Consistency::kBulkSynchronous, ops::SgdRule{.lr = 1}, 2);
  options.average = false;
  options.tables = {{.name = "words",
                     .width = 5,
                     .start = RowStart::kNormal,
                     .scale = 1,
                     .seed = 3,
                     .limit = 0,
                     .rule = ops::SgdRule{.lr = 1}}};
  Make(options, {{"x", Tensor::Zeros({4})}});
  const auto first = Join(0);
  const auto second = Join(1, "dave");
  EXPECT_EQ(first->TableOf("words"), 0);
  EXPECT_EQ(first->TableOf("images"), -1);
  const Tensor keys = Tensor::From<int64_t>({11, 5, 400, -2, 11, 8});
  const auto before = first->PullRows(0, keys).Await();
  ASSERT_THAT(before, IsOk());
  const auto push = [&](ServerClient& client, std::vector<int64_t> of) {
    const auto count = static_cast<int64_t>(of.size());
    Trade trade;
    trade.row_gradients = {{.table = 0,
                            .keys = Tensor::From(of),
                            .gradients = Tensor::Full({count, 5}, -1)}};
    trade.rows = {{.table = 0, .keys = keys}};
    return client.Do(std::move(trade));
  };
  const auto one = push(*first, {11, 400, 11});
  const auto other = push(*second, {400, -2});
  const auto after = one.Await();
  ASSERT_THAT(after, IsOk());
  ASSERT_THAT(other.Await(), IsOk());
  const auto was = before->ToVector<float>();
  const auto is = after->rows[0].ToVector<float>();
  const std::vector<float> added = {2, 0, 2, 1, 2, 0};
  for (size_t i = 0; i < is.size(); ++i)
    EXPECT_NEAR(is[i] - was[i], added[i / 5], 1e-5) << i;
  EXPECT_THAT(first->PullRows(1, keys).Await(),
              Fails(absl::StatusCode::kInvalidArgument, "no table"));
}

}  // namespace
}  // namespace baton::dist
