// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/model_averager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::dist {
namespace {

using testing::Fails;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

constexpr int64_t kElements = 5;

// Two parameters and a buffer; each step of SGD at rate 1 takes what Step is
// given off each element.
class AveragedSlope final : public nn::Module {
 public:
  explicit AveragedSlope(float start) {
    RegisterParameter("a", Tensor::Full({kElements}, start));
    RegisterParameter("b", Tensor::Full({2, 2}, start));
    RegisterBuffer("seen", Tensor::Full({1}, start));
  }
  void Step(double slope) {
    optim::Sgd sgd(Parameters(), {.lr = 1});
    for (const Variable& each : Parameters()) {
      Variable(each).ZeroGrad();
      autograd::MulScalar(autograd::Sum(each), slope).Backward();
    }
    sgd.Step();
  }
  double value() const {
    const float first = Parameters()[0].tensor().data<float>()[0];
    for (const Variable& each : Parameters())
      for (const float other : each.tensor().ToVector<float>())
        EXPECT_EQ(other, first);
    return first;
  }
  double seen() const { return NamedBuffers()[0].value.data<float>()[0]; }
};

// What each member has after each of so many steps, of which it takes off its
// rank.
std::vector<std::vector<double>> Values(size_t ranks, int steps,
                                        const AveragingOptions& options) {
  const Groups groups(static_cast<int>(ranks), {.name = "Shared"});
  std::vector<std::vector<double>> values(ranks);
  OnEach(ranks, [&](size_t rank) {
    AveragedSlope model(
        static_cast<float>(100 + rank));  // the first one's counts
    const auto averager = ModelAverager::Make(model, groups[rank], options);
    ASSERT_THAT(averager, IsOk());
    EXPECT_EQ(model.value(), 100);
    EXPECT_EQ(model.seen(), 100);
    for (int step = 0; step < steps; ++step) {
      model.Step(static_cast<double>(rank));
      ASSERT_THAT((*averager)->Step(), IsOk());
      values[rank].push_back(model.value());
    }
    EXPECT_EQ((*averager)->steps(), steps);
  });
  return values;
}

TEST(ModelAverager, TakesTheMeanOfAllAfterEachPeriod) {
  const auto values = Values(3, 4, {.period = 2});
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto own = static_cast<double>(rank);
    // The mean member takes off 1.
    const std::vector<double> expected = {100 - own, 98, 98 - own, 96};
    EXPECT_EQ(values[rank], expected);
  }
}

TEST(ModelAverager, AveragesEachOfTheFirstSteps) {
  const auto values = Values(3, 5, {.period = 3, .warm_up = 2});
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto own = static_cast<double>(rank);
    const std::vector<double> expected = {99, 98, 98 - own, 98 - 2 * own, 95};
    EXPECT_EQ(values[rank], expected);
  }
}

TEST(ModelAverager, GossipsWithOthersFartherAndFartherAway) {
  const auto values = Values(4, 2, {.kind = Averaging::kGossip, .period = 1});
  // The first time with the one before, the second with the one before that.
  const double first[] = {(100 + 97) / 2.0, (99 + 100) / 2.0, (98 + 99) / 2.0,
                          (97 + 98) / 2.0};
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(values[rank][0], first[rank]);
    const size_t other = (rank + 2) % 4;
    EXPECT_EQ(values[rank][1], (first[rank] - static_cast<double>(rank) +
                                first[other] - static_cast<double>(other)) /
                                   2);
  }
}

TEST(ModelAverager, GossipKeepsTheMeanAndBringsModelsTogether) {
  for (const size_t ranks : {2, 3, 5}) {
    const auto values =
        Values(ranks, 40, {.kind = Averaging::kGossip, .period = 1});
    double mean = 0, least = 100, most = -100;
    for (const auto& of_one : values) {
      mean += of_one.back() / static_cast<double>(ranks);
      least = std::min(least, of_one.back());
      most = std::max(most, of_one.back());
    }
    const double slope = static_cast<double>(ranks - 1) / 2;
    EXPECT_NEAR(mean, 100 - 40 * slope, 1e-3) << ranks;
    // By themselves they would be 40 times as far apart as after one step.
    EXPECT_LT(most - least, 4.0 * static_cast<double>(ranks - 1)) << ranks;
  }
}

TEST(ModelAverager, EndsWithTheMeanOfAllOnDemand) {
  const Groups groups(2, {.name = "Shared"});
  OnEach(2, [&](size_t rank) {
    AveragedSlope model(10);
    const auto averager =
        ModelAverager::Make(model, groups[rank], {.period = 100});
    ASSERT_THAT(averager, IsOk());
    model.Step(static_cast<double>(rank));
    ASSERT_THAT((*averager)->Step(), IsOk());
    EXPECT_EQ(model.value(), 10 - static_cast<double>(rank));
    ASSERT_THAT((*averager)->AverageAll(), IsOk());
    EXPECT_EQ(model.value(), 9.5);
    EXPECT_EQ((*averager)->averaged(), 1);
  });
}

TEST(ModelAverager, NamesAMemberThatIsLost) {
  for (const Averaging kind : {Averaging::kPeriodic, Averaging::kGossip}) {
    Groups groups(2, {.name = "Shared"});
    std::vector<std::unique_ptr<AveragedSlope>> models;
    std::vector<std::unique_ptr<ModelAverager>> averagers(2);
    for (int i = 0; i < 2; ++i)
      models.push_back(std::make_unique<AveragedSlope>(1));
    OnEach(2, [&](size_t rank) {
      auto made = ModelAverager::Make(*models[rank], groups[rank],
                                      {.kind = kind, .period = 1});
      ASSERT_THAT(made, IsOk());
      averagers[rank] = *std::move(made);
    });
    groups.cluster().Kill("w1");
    EXPECT_THAT(averagers[0]->Step(),
                Fails(absl::StatusCode::kUnavailable, "w1"));
  }
}

TEST(ModelAverager, RefusesAPeriodOfNoSteps) {
  const Groups groups(1, {.name = "Shared"});
  const AveragedSlope model(1);
  EXPECT_THAT(ModelAverager::Make(model, groups[0], {.period = 0}),
              Fails(absl::StatusCode::kInvalidArgument, "each step or less"));
}

}  // namespace
}  // namespace baton::dist
