// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/kept_pushes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/distributed/server/server_cluster.h"

// Pushes that one of two shards takes.
namespace baton::dist {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;
using testing::ServerTest;

class HalfPushed : public ServerTest,
                   public ::testing::WithParamInterface<Consistency> {
 protected:
  HalfPushed() : ServerTest(nullptr, std::make_shared<rpc::FaultPlan>()) {}

  // Dave trains by himself.
  void Make(Compression compression = {}) {
    ServerOptions options;
    options.mode = GetParam();
    options.rule = ops::SgdRule{.lr = 1};
    options.trainers = 1;
    options.part_bytes = 4000;
    options.tables = {
        {.name = "rows", .width = 4, .rule = ops::SgdRule{.lr = 1}}};
    ServerTest::Make(options, {{"x", Tensor::Zeros({20'000})}});
    client_ = Join(0, "dave",
                   {.timeout = std::chrono::milliseconds(500),
                    .compression = compression});
    ASSERT_NE(client_, nullptr);
  }
  // No push arrives at carol until Mend.
  void Break() {
    faults().Add({.matches = [](const rpc::WorkerInfo& from,
                                const std::string& to,
                                const rpc::Message& message) {
      return from.name == "dave" && to == "carol" && !message.tensors.empty();
    }});
  }
  void Mend() { faults().Clear(); }

  // Each push has tensors of its own, which are written when it is over.
  absl::Status Push() {
    Trade trade{.gradients = Filled(-1),
                .row_gradients = {
                    {.keys = Keys(), .gradients = Tensor::Full({64, 4}, -1)}}};
    const std::vector<Tensor> gradients = trade.gradients;
    const Tensor rows = trade.row_gradients[0].gradients;
    const absl::Status pushed = client_->Do(std::move(trade)).Await().status();
    for (const Tensor& gradient : gradients) gradient.Fill(100);
    rows.Fill(100);
    return pushed;
  }
  std::vector<int64_t> Versions() {
    return {ReportOf(0).version, ReportOf(1).version};
  }
  void ExpectAll(float value) {
    EXPECT_THAT(Read(*client_)[0].ToVector<float>(), Each(value));
    const auto rows = client_->PullRows(0, Keys()).Await();
    ASSERT_THAT(rows, IsOk());
    EXPECT_THAT(rows->ToVector<float>(), Each(value));
  }

  Client client_;

 private:
  static Tensor Keys() { return Tensor::Arange(64); }
};

TEST_P(HalfPushed, ReachTheOtherShardBeforeTheNextPush) {
  Make();
  ASSERT_THAT(Push(), IsOk());
  Break();
  EXPECT_THAT(Push(), Fails(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(Versions(), ElementsAre(2, 1));
  // While it does not, no other push reaches any shard.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Push(), Fails(absl::StatusCode::kDeadlineExceeded,
                              "shard 1 may lack an earlier push"));
  }
  EXPECT_THAT(Versions(), ElementsAre(2, 1));
  Mend();
  EXPECT_THAT(Push(), IsOk());
  EXPECT_THAT(Versions(), ElementsAre(3, 3));
  ExpectAll(3);
}

// Those that were under way when the first one failed are kept, too.
TEST_P(HalfPushed, ReachTheOtherShardInOrder) {
  Make();
  Break();
  std::vector<Future<Pulled>> pushes;
  for (int i = 0; i < 3; ++i) pushes.push_back(client_->Push(Filled(-1)));
  for (const auto& push : pushes)
    EXPECT_THAT(push.Await(), Fails(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(Versions(), ElementsAre(3, 0));
  Mend();
  EXPECT_THAT(client_->Push(Filled(-1)).Await(), IsOk());
  EXPECT_THAT(Versions(), ElementsAre(4, 4));
  EXPECT_THAT(Read(*client_)[0].ToVector<float>(), Each(4));
}

// The error of what is left out is fed back once.
TEST_P(HalfPushed, AreCompressedOnce) {
  Make({.kind = Compression::Kind::kBf16});
  Break();
  EXPECT_THAT(Push(), Fails(absl::StatusCode::kDeadlineExceeded, ""));
  Mend();
  EXPECT_THAT(Push(), IsOk());
  EXPECT_THAT(Versions(), ElementsAre(2, 2));
  ExpectAll(2);
}

// One shard took it, and its answer was lost: it counts once.
TEST_P(HalfPushed, CountOnceWhereTheyWereTaken) {
  Make();
  faults().Add({.matches = [](const rpc::WorkerInfo& from,
                              const std::string& to, const rpc::Message&) {
    return from.name == "carol" && to == "dave";
  }});
  EXPECT_THAT(Push(), Fails(absl::StatusCode::kDeadlineExceeded, ""));
  Mend();
  EXPECT_THAT(Push(), IsOk());
  EXPECT_THAT(Versions(), ElementsAre(2, 2));
  ExpectAll(2);
}

INSTANTIATE_TEST_SUITE_P(Modes, HalfPushed,
                         ::testing::Values(Consistency::kBulkSynchronous,
                                           Consistency::kBoundedStale,
                                           Consistency::kAsynchronous));

}  // namespace
}  // namespace baton::dist
