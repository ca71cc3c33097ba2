// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/functions/shape.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::baton::testing::GoldenCase;
using ::baton::testing::LargestDistance;
using ::testing::ElementsAre;

template <typename Layer>
void ExpectPyTorchs(const std::string& name, const RnnOptions& options) {
  constexpr double kTolerance = 1e-11;
  const GoldenCase golden("rnn.safetensors", name);
  Generator generator(0);
  Layer layer(4, 6, generator, options);
  golden.Load(layer);
  const Variable x = golden.Leaf("x"), h = golden.Leaf("h");
  const Variable c = golden.Leaf("c");
  const auto [y, last] = layer.Run(x, {h, c});
  std::vector<Variable> results = {y, last.h};
  std::vector<Tensor> given = {golden["dy"], golden["dhn"]};
  EXPECT_LT(LargestDistance(y.tensor(), golden["y"]), kTolerance);
  EXPECT_LT(LargestDistance(last.h.tensor(), golden["hn"]), kTolerance);
  ASSERT_EQ(last.c.defined(), golden["cn"].defined());
  if (last.c.defined()) {
    EXPECT_LT(LargestDistance(last.c.tensor(), golden["cn"]), kTolerance);
    results.push_back(last.c);
    given.push_back(golden["dcn"]);
  }
  autograd::Backward(results, given);
  EXPECT_LT(LargestDistance(x.grad(), golden["dx"]), kTolerance);
  EXPECT_LT(LargestDistance(h.grad(), golden["dh"]), kTolerance);
  if (c.defined()) {
    EXPECT_LT(LargestDistance(c.grad(), golden["dc"]), kTolerance);
  }
  golden.ExpectGradients(layer, kTolerance);
}

TEST(LSTM, ComputesWhatPyTorchDoes) {
  ExpectPyTorchs<LSTM>("lstm", {});
  ExpectPyTorchs<LSTM>("lstm_deep", {.layers = 2, .bidirectional = true});
  ExpectPyTorchs<LSTM>("lstm_plain", {.bias = false});
}

TEST(GRU, ComputesWhatPyTorchDoes) {
  ExpectPyTorchs<GRU>("gru", {});
  ExpectPyTorchs<GRU>("gru_deep", {.layers = 2, .bidirectional = true});
  ExpectPyTorchs<GRU>("gru_plain", {.bias = false});
}

TEST(LSTM, NamesItsParametersAsPyTorchDoes) {
  Generator generator(0);
  LSTM layer(3, 5, generator, {.layers = 1, .bidirectional = true});
  std::vector<std::string> names;
  for (const auto& parameter : layer.NamedParameters())
    names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                 "bias_hh_l0", "weight_ih_l0_reverse",
                                 "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                 "bias_hh_l0_reverse"));
}

TEST(LSTM, StartsUniformWithinTheBoundOfItsHiddenSize) {
  Generator generator(0);
  LSTM layer(40, 100, generator);
  for (const Variable& parameter : layer.Parameters()) {
    const double largest =
        ops::Max(ops::Abs(parameter.tensor()).Flatten(), 0).values.Item();
    EXPECT_LE(largest, 0.1);
    EXPECT_GT(largest, 0.09);
  }
}

TEST(GRU, CarriesItsStateFromPieceToPiece) {
  Generator generator(0);
  GRU layer(3, 4, generator, {.layers = 2});
  layer.To(test::TestDevice());
  const Tensor x = test::Put(RandNormal({6, 2, 3}, generator));
  const Variable whole = layer.Forward(x);
  const auto first = layer.Run(x.Slice(0, 0, 2), {});
  const auto rest = layer.Run(x.Slice(0, 2, 6), first.last);
  EXPECT_LT(LargestDistance(whole.tensor().Slice(0, 2, 6).To(DType::kF64),
                            rest.y.tensor().To(DType::kF64)),
            1e-6);
}

TEST(GRU, TakesBatchesFirst) {
  Generator generator(0), same(0);
  GRU by_steps(3, 4, generator);
  GRU by_batch(3, 4, same, {.batch_first = true});
  by_steps.To(test::TestDevice());
  by_batch.To(test::TestDevice());
  const Tensor x = test::Put(RandNormal({5, 2, 3}, generator));
  const Tensor y = by_batch.Forward(x.Transpose(0, 1)).tensor();
  EXPECT_EQ(y.shape(), Shape({2, 5, 4}));
  EXPECT_EQ(y.Transpose(0, 1).ToVector<float>(),
            by_steps.Forward(x).tensor().ToVector<float>());
}

}  // namespace
}  // namespace baton::nn
