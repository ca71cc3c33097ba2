// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/rnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/engine.h"
#include "autograd/functions/shape.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/safetensors.h"
#include "tests/support/golden/golden_path.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::testing::ElementsAre;

double LargestDistance(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.ToVector<double>(), y = b.ToVector<double>();
  double largest = x.size() == y.size() ? 0 : 1e300;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

// One case of tools/golden/rnn.py.
class Golden {
 public:
  explicit Golden(const std::string& name) : prefix_(name + ".") {
    auto read = ReadSafeTensors(testing::GoldenPath("rnn.safetensors"));
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok()) all_ = read->tensors;
  }
  // Undefined where there is none.
  Tensor operator[](const std::string& name) const {
    const auto it = all_.find(prefix_ + name);
    return it == all_.end() ? Tensor() : test::Put(it->second);
  }
  Variable Leaf(const std::string& name) const {
    const Tensor value = (*this)[name];
    return value.defined() ? Variable(value, true) : Variable();
  }
  StateMap State() const {
    const std::string start = prefix_ + "state.";
    StateMap state;
    for (const auto& [name, value] : all_) {
      if (name.rfind(start, 0) == 0) state[name.substr(start.size())] = value;
    }
    return state;
  }

 private:
  const std::string prefix_;
  std::map<std::string, Tensor> all_;
};

template <typename Layer>
void ExpectPyTorchs(const std::string& name, const RnnOptions& options) {
  constexpr double kTolerance = 1e-11;
  const Golden golden(name);
  Generator generator(0);
  Layer layer(4, 6, generator, options);
  layer.To(DType::kF64);
  layer.To(test::TestDevice());
  const absl::Status loaded = layer.LoadStateDict(golden.State());
  ASSERT_TRUE(loaded.ok()) << loaded;
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
  for (const auto& [key, value] : layer.NamedParameters()) {
    EXPECT_LT(LargestDistance(value.grad(), golden["grad." + key]), kTolerance)
        << key;
  }
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
