// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// Steps within recorded graphs, which only GPUs have.
namespace baton::optim {
namespace {

using test::ErrorOf;
using test::Put;
using ::testing::HasSubstr;

class RecordedStep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  Graph Record(Optimizer& optimizer) const {
    return Graph::Record({test::TestDevice()}, [&] { optimizer.Step(); });
  }
};

// Two equal parameters, of f32 and of bf16, with gradients.
std::vector<Variable> Parameters() {
  std::vector<Variable> parameters;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    parameters.emplace_back(Put<float>({1, -2, 3}).To(dtype), true);
    parameters.back().set_grad(Put<float>({0.5, 1, -0.25}).To(dtype));
  }
  return parameters;
}

void ExpectEqual(const std::vector<Variable>& a,
                 const std::vector<Variable>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(ops::BitEqual(a[i].tensor(), b[i].tensor())) << i;
}

template <typename O, typename Options>
void ReplaysEqualSteps(const Options& options,
                       const std::function<Graph(Optimizer&)>& record) {
  const std::vector<Variable> replayed = Parameters(), stepped = Parameters();
  O recorded(replayed, options), plain(stepped, options);
  recorded.Step();
  const Graph graph = record(recorded);
  plain.Step();
  for (double lr : {0.1, 0.1, 0.02}) {
    recorded.set_lr(lr);
    plain.set_lr(lr);
    graph.Replay();
    plain.Step();
    ExpectEqual(replayed, stepped);
  }
  const StateDict expected = plain.ExportState();
  for (const auto& [key, tensor] : recorded.ExportState())
    EXPECT_TRUE(ops::BitEqual(tensor, expected.at(key))) << key;
  // A state that comes back is the recorded step's own.
  ASSERT_TRUE(recorded.ImportState(expected).ok());
  graph.Replay();
  plain.Step();
  ExpectEqual(replayed, stepped);
}

TEST_F(RecordedStep, OfSgdObeysTheRateAndCounts) {
  ReplaysEqualSteps<Sgd>(
      SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.2},
      [&](Optimizer& o) { return Record(o); });
}

TEST_F(RecordedStep, OfAdamObeysTheRateAndCounts) {
  ReplaysEqualSteps<AdamW>(AdamWOptions{.lr = 0.1},
                           [&](Optimizer& o) { return Record(o); });
}

TEST_F(RecordedStep, OfTheOthersToo) {
  const auto record = [&](Optimizer& o) { return Record(o); };
  ReplaysEqualSteps<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.5},
                             record);
  ReplaysEqualSteps<RmsProp>(
      RmsPropOptions{.lr = 0.1, .momentum = 0.9, .centered = true}, record);
  ReplaysEqualSteps<Adadelta>(AdadeltaOptions{.lr = 0.5}, record);
  ReplaysEqualSteps<Adamax>(AdamaxOptions{.lr = 0.1}, record);
  ReplaysEqualSteps<Rprop>(RpropOptions{.lr = 0.1}, record);
}

TEST_F(RecordedStep, FollowsTheSchedule) {
  const std::vector<Variable> replayed = Parameters(), stepped = Parameters();
  Sgd recorded(replayed, {.lr = 0.4}), plain(stepped, {.lr = 0.4});
  for (Sgd* sgd : {&recorded, &plain})
    sgd->set_schedule(StepLr({.every = 1, .factor = 0.5}));
  recorded.Step();
  plain.Step();
  const Graph graph = Record(recorded);
  for (int i = 0; i < 3; ++i) {
    graph.Replay();
    plain.Step();
    EXPECT_EQ(recorded.lr(), plain.lr());
    ExpectEqual(replayed, stepped);
  }
}

TEST_F(RecordedStep, BeginsFromWhatOthersWriteBetweenReplays) {
  const std::vector<Variable> replayed = Parameters(), stepped = Parameters();
  Sgd recorded(replayed, {.lr = 0.1, .momentum = 0.9}),
      plain(stepped, {.lr = 0.1, .momentum = 0.9});
  recorded.Step();
  plain.Step();
  const auto write = [&](double value) {
    for (const auto* parameters : {&replayed, &stepped})
      for (const Variable& parameter : *parameters)
        parameter.tensor().Fill(value);
  };
  write(2);  // before the recording too
  const Graph graph = Record(recorded);
  for (double value : {0.0, 5.0, -3.0}) {
    if (value != 0) write(value);
    for (int i = 0; i < 3; ++i) {
      graph.Replay();
      plain.Step();
      ExpectEqual(replayed, stepped);
    }
  }
  // And a plain step from where the replays left the masters.
  recorded.Step();
  plain.Step();
  ExpectEqual(replayed, stepped);
}

TEST_F(RecordedStep, MakesGraphsOfTheFormerValuesStale) {
  const std::vector<Variable> parameters = Parameters();
  Sgd sgd(parameters, {.lr = 0.1});
  sgd.Step();
  const Graph graph = Record(sgd);
  const Variable kept = autograd::Sum(parameters[0] * parameters[0]);
  graph.Replay();
  EXPECT_THAT(ErrorOf([&] { kept.Backward(); }),
              HasSubstr("was written in place after the forward"));
}

TEST_F(RecordedStep, OfWhatWasMovedSinceIsRefused) {
  std::vector<Variable> parameters = Parameters();
  Sgd sgd(parameters, {.lr = 0.1});
  sgd.Step();
  const Graph graph = Record(sgd);
  graph.Replay();
  parameters[0].set_tensor(parameters[0].tensor().Clone());
  EXPECT_THAT(ErrorOf([&] { graph.Replay(); }), HasSubstr("record it anew"));
}

TEST_F(RecordedStep, IsRefusedWhereReplaysWouldGoWrong) {
  const std::vector<Variable> parameters = Parameters();
  Sgd sgd(parameters, {.lr = 0.1, .momentum = 0.9});
  EXPECT_THAT(ErrorOf([&] { Record(sgd); }), HasSubstr("first step"));
  sgd.Step();
  EXPECT_THAT(ErrorOf([&] {
                Graph::Record({test::TestDevice()}, [&] { sgd.set_lr(1); });
              }),
              HasSubstr("new learning rate"));
  EXPECT_EQ(sgd.lr(), 0.1);
}

}  // namespace
}  // namespace baton::optim
