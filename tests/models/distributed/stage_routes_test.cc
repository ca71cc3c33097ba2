// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/stage_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/error_of.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Output 1 of stage 0 skips two stages, its output 0 goes two ways, and input 1
// of the batch is for stage 2.
const std::vector<StageRoute> kRoutes = {
    {.from = 0, .output = 1, .to = 3, .input = 0},
    {.from = 0, .output = 0, .to = 1, .input = 1},
    {.from = 0, .output = 0, .to = 3, .input = 2},
    {.from = kBatch, .output = 1, .to = 2, .input = 0}};

StageWiring WiringOf(int stage) { return {stage, 4, kRoutes}; }

TEST(StageWiring, AChainPassesAllAlong) {
  const StageWiring middle(1, 3, {});
  EXPECT_THAT(middle.sources(), ElementsAre(0));
  EXPECT_THAT(middle.targets(), ElementsAre(2));
  EXPECT_THAT(middle.InputsFrom(0, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(middle.OutputsTo(2, 2), ElementsAre(0, 1));
  EXPECT_THAT(StageWiring(0, 3, {}).sources(), ElementsAre(kBatch));
  EXPECT_THAT(StageWiring(2, 3, {}).targets(), IsEmpty());
  EXPECT_THAT(StageWiring(kBatch, 3, {}).sources(), IsEmpty());
  EXPECT_THAT(StageWiring(kBatch, 3, {}).targets(), ElementsAre(0));
}

TEST(StageWiring, KnowsItsNeighbours) {
  EXPECT_THAT(WiringOf(kBatch).targets(), ElementsAre(0, 2));
  EXPECT_THAT(WiringOf(0).targets(), ElementsAre(1, 3));
  EXPECT_THAT(WiringOf(1).sources(), ElementsAre(0));
  EXPECT_THAT(WiringOf(2).sources(), ElementsAre(kBatch, 1));
  EXPECT_THAT(WiringOf(3).sources(), ElementsAre(0, 2));
}

TEST(StageWiring, BothEndsSayTheSame) {
  // Stage 0 gives three: the one that no route names goes along the chain.
  EXPECT_THAT(WiringOf(0).OutputsTo(1, 3), ElementsAre(2, 0));
  EXPECT_THAT(WiringOf(1).InputsFrom(0, 2), ElementsAre(0, 1));
  EXPECT_THAT(WiringOf(0).OutputsTo(3, 3), ElementsAre(1, 0));
  EXPECT_THAT(WiringOf(3).InputsFrom(0, 4), ElementsAre(0, 2));
  EXPECT_THAT(WiringOf(3).InputsFrom(2, 4), ElementsAre(1, 3));
}

TEST(StageWiring, JoinsWhatOthersHaveSplit) {
  Values outputs;
  for (int64_t size : {1, 2, 3}) outputs.push_back(Tensor::Ones({size}));
  Parcels sent = WiringOf(0).Split(outputs);
  ASSERT_EQ(sent.size(), 2U);
  Parcels came;
  came[0] = sent[3];
  came[2] = {Tensor::Ones({7})};
  const Values inputs = WiringOf(3).Join(came);
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].numel(), 2);
  EXPECT_EQ(inputs[1].numel(), 7);
  EXPECT_EQ(inputs[2].numel(), 1);
}

TEST(StageWiring, NamesThatThereAreNotAreErrors) {
  EXPECT_THAT(test::ErrorOf([] { WiringOf(0).Split({Tensor::Ones({1})}); }),
              HasSubstr("a route names output 1, counted from 0, where there "
                        "is 1"));
  EXPECT_THAT(test::ErrorOf([] {
                WiringOf(3).Join({{0, {Tensor::Ones({1})}}, {2, {}}});
              }),
              HasSubstr("a route names input 2"));
  EXPECT_THAT(test::ErrorOf([] {
                const Values three(3, Tensor::Ones({1}));
                WiringOf(3).Join({{0, three}, {2, {}}});
              }),
              HasSubstr("3 values came from stage 0, where routes lead to 2"));
}

}  // namespace
}  // namespace baton::dist
