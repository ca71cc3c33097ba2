// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/rnn.h"

#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/shape.h"
#include "tests/support/gradcheck.h"
#include "tests/support/named.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using ops::RnnCell;
using ops::RnnOptions;
using NamedCell = ::baton::testing::Named<RnnCell>;
using Inputs = const std::vector<Variable>&;

constexpr int64_t kSteps = 3, kBatch = 2, kIn = 3, kHidden = 2;

// x, h, c for the LSTM, and weights.
std::vector<Tensor> InputsOf(const RnnOptions& options, bool biases) {
  const int64_t directions = options.bidirectional ? 2 : 1;
  const int64_t rows = ops::GatesOf(options.cell) * kHidden;
  const Shape state = {options.layers * directions, kBatch, kHidden};
  std::vector<Tensor> inputs = {Random({kSteps, kBatch, kIn}), Random(state)};
  if (options.cell == RnnCell::kLstm) inputs.push_back(Random(state));
  for (int64_t i = 0; i < options.layers * directions; ++i) {
    inputs.push_back(
        Random({rows, i < directions ? kIn : directions * kHidden}));
    inputs.push_back(Random({rows, kHidden}));
    if (!biases) continue;
    inputs.push_back(Random({rows}));
    inputs.push_back(Random({rows}));
  }
  return inputs;
}

RnnOutputs Layers(Inputs v, const RnnOptions& options, bool biases) {
  const bool lstm = options.cell == RnnCell::kLstm;
  std::vector<Variable> weights;
  for (size_t i = lstm ? 3 : 2; i < v.size(); ++i) {
    weights.push_back(v[i]);
    if (!biases && weights.size() % 4 == 2) weights.resize(weights.size() + 2);
  }
  return Rnn(v[0], v[1], lstm ? v[2] : Variable(), weights, options);
}

// All results in one, so that all are used.
Variable Joined(const RnnOutputs& outputs) {
  std::vector<Variable> parts = {Flatten(outputs.y), Flatten(outputs.h)};
  if (outputs.c.defined()) parts.push_back(Flatten(outputs.c));
  return Cat(parts, 0);
}

class RnnGradients : public ::testing::TestWithParam<NamedCell> {};
INSTANTIATE_TEST_SUITE_P(Cells, RnnGradients,
                         ::testing::Values(NamedCell{"Lstm", RnnCell::kLstm},
                                           NamedCell{"Gru", RnnCell::kGru}),
                         ::testing::PrintToStringParamName());

TEST_P(RnnGradients, OfOneLayer) {
  const RnnOptions options = {.cell = GetParam().value};
  EXPECT_TRUE(
      GradCheck([&](Inputs v) { return Joined(Layers(v, options, true)); },
                InputsOf(options, true)));
}

TEST_P(RnnGradients, OfTwoLayersInBothDirections) {
  const RnnOptions options = {
      .cell = GetParam().value, .layers = 2, .bidirectional = true};
  EXPECT_TRUE(
      GradCheck([&](Inputs v) { return Joined(Layers(v, options, true)); },
                InputsOf(options, true)));
}

TEST_P(RnnGradients, WithoutBiases) {
  const RnnOptions options = {.cell = GetParam().value, .layers = 2};
  EXPECT_TRUE(
      GradCheck([&](Inputs v) { return Joined(Layers(v, options, false)); },
                InputsOf(options, false)));
}

TEST_P(RnnGradients, WhereOnlyTheLastStateIsUsed) {
  const RnnOptions options = {.cell = GetParam().value, .bidirectional = true};
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Layers(v, options, true).h; },
                        InputsOf(options, true)));
}

TEST_P(RnnGradients, FromStatesOfZero) {
  const RnnOptions options = {.cell = GetParam().value};
  std::vector<Tensor> inputs = InputsOf(options, true);
  inputs.erase(inputs.begin() + 1,
               inputs.begin() + (GetParam().value == RnnCell::kLstm ? 3 : 2));
  EXPECT_TRUE(GradCheck(
      [&](Inputs v) {
        return Joined(Rnn(v[0], {}, {}, {v.begin() + 1, v.end()}, options));
      },
      inputs));
}

TEST_P(RnnGradients, AreTheSameInASecondPass) {
  const RnnOptions options = {.cell = GetParam().value};
  std::vector<Variable> inputs;
  for (const Tensor& input : InputsOf(options, true))
    inputs.emplace_back(test::Put(input), true);
  const Variable y = Joined(Layers(inputs, options, true));
  const Tensor ones =
      test::Put(Tensor::Ones(y.shape(), {.dtype = DType::kF64}));
  const auto first = Grad({y}, inputs, {ones}, true);
  const auto second = Grad({y}, inputs, {ones});
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i].ToVector<double>(), second[i].ToVector<double>()) << i;
}

}  // namespace
}  // namespace baton::autograd
