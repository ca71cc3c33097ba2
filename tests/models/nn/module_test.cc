// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/module.h"

#include "core/ops/arithmetic.h"
#include "gtest/gtest.h"
#include "models/nn/activation.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/dropout.h"
#include "models/nn/linear.h"
#include "models/nn/scopes.h"
#include "models/nn/sequential.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

// conv.weight, conv.bias, norm.*, tail.0.weight, tail.0.bias.
class Net final : public Module {
 public:
  explicit Net(uint64_t seed)
      : generator_(seed),
        conv_(MakeModule<Conv2d>("conv", 2, 4, Conv2dOptions{}, generator_)),
        norm_(MakeModule<BatchNorm2d>("norm", 4)),
        tail_(MakeModule<Sequential>("tail")) {
    tail_.Emplace<Linear>(3, 5, generator_);
    tail_.Emplace<ReLU>();
  }
  Variable Forward(const Variable& x) override {
    return tail_.Forward(norm_.Forward(conv_.Forward(x)));
  }

 private:
  Generator generator_;
  Conv2d& conv_;
  BatchNorm2d& norm_;
  Sequential& tail_;
};

template <typename T>
std::vector<std::string> NamesOf(const std::vector<Named<T>>& list) {
  std::vector<std::string> names;
  for (const auto& named : list) names.push_back(named.name);
  return names;
}

TEST(Module, NamesFollowTheTree) {
  Net net(0);
  EXPECT_EQ(
      NamesOf(net.NamedParameters()),
      std::vector<std::string>({"conv.weight", "conv.bias", "norm.weight",
                                "norm.bias", "tail.0.weight", "tail.0.bias"}));
  EXPECT_EQ(NamesOf(net.NamedBuffers()),
            std::vector<std::string>({"norm.running_mean", "norm.running_var",
                                      "norm.num_batches_tracked"}));
  EXPECT_EQ(net.NumParameters(), 4 * 2 * 9 + 4 + 4 + 4 + 15 + 5);
  for (const Variable& p : net.Parameters()) EXPECT_TRUE(p.requires_grad());
}

TEST(Module, AChildUnderTwoNamesIsListedOnceButKeptInTheStateTwice) {
  Generator generator(0);
  const auto linear = std::make_shared<Linear>(2, 2, generator);
  Sequential twice;
  twice.Add(linear);
  twice.Add(linear);
  EXPECT_EQ(twice.Parameters().size(), 2U);
  EXPECT_EQ(twice.StateDict().size(), 4U);
}

TEST(Module, TrainAndEvalReachTheWholeTree) {
  Net net(0);
  EXPECT_TRUE(net.is_training());
  net.Eval();
  EXPECT_FALSE(net.children()[2].value->children()[0].value->is_training());
  net.Train();
  EXPECT_TRUE(net.children()[2].value->children()[0].value->is_training());
}

TEST(Module, GeneratorsOfTheWholeTreeAreListedOnce) {
  const auto dropout = std::make_shared<Dropout>(0.5, 3);
  Sequential outer;
  outer.Add(dropout);
  outer.Emplace<Sequential>().Add(dropout);
  outer.Emplace<Dropout>(0.5, 4);
  const std::vector<Generator*> generators = outer.Generators();
  ASSERT_EQ(generators.size(), 2U);
  EXPECT_EQ(generators[0], &dropout->generator());
  EXPECT_EQ(generators[1]->seed(), 4U);
}

TEST(Module, AnEvalScopeGivesEveryModuleItsFormerMode) {
  Net net(0);
  net.children()[1].value->Eval();
  {
    EvalScope scope(net);
    EXPECT_FALSE(net.is_training());
    EXPECT_FALSE(net.children()[2].value->children()[0].value->is_training());
  }
  EXPECT_TRUE(net.is_training());
  EXPECT_TRUE(net.children()[0].value->is_training());
  EXPECT_FALSE(net.children()[1].value->is_training());
  EXPECT_TRUE(net.children()[2].value->children()[0].value->is_training());
}

// As one forward that is run twice.
TEST(Module, ARerunDrawsTheSameNumbersAndLeavesNoTrace) {
  Sequential net;
  net.Emplace<BatchNorm2d>(2);
  net.Emplace<Dropout>(0.5, 3);
  Generator generator(1);
  const Tensor x = RandNormal({4, 2, 3, 3}, generator);
  const GeneratorStates before(net);
  const Tensor first = net.Forward(x).tensor();
  const Tensor second = net.Forward(x).tensor();
  StateMap state = net.StateDict();
  for (auto& [name, tensor] : state) tensor = tensor.Clone();
  {
    RerunScope scope(net, before);
    EXPECT_TRUE(ops::BitEqual(net.Forward(x).tensor(), first));
    EXPECT_TRUE(ops::BitEqual(net.Forward(x).tensor(), second));
    EXPECT_FALSE(ops::BitEqual(net.Forward(x).tensor(), second));
  }
  for (const auto& [name, tensor] : net.StateDict()) {
    EXPECT_TRUE(ops::BitEqual(tensor, state.at(name))) << name;
  }
  EXPECT_EQ(net.Generators()[0]->state().draws, 2U);
}

TEST(Module, StatePassesFromOneModuleToAnother) {
  Net from(1);
  Net to(2);
  from.NamedBuffers()[2].value.Fill(7);
  ASSERT_TRUE(to.LoadStateDict(from.StateDict()).ok());
  for (const auto& [name, value] : to.StateDict())
    EXPECT_TRUE(ops::BitEqual(value, from.StateDict().at(name))) << name;
  // Copied: the two stay apart.
  from.Parameters()[0].tensor().Fill(0);
  EXPECT_NE(to.Parameters()[0].tensor().ToVector<float>()[0], 0);
}

TEST(Module, LoadingNamesEveryMisfitAndThenWritesNothing) {
  Net net(1);
  const std::vector<float> before =
      net.Parameters()[0].tensor().ToVector<float>();
  StateMap state = Net(2).StateDict();
  state.erase("conv.bias");
  state["fc.weight"] = Tensor::Zeros({1});
  state["tail.0.bias"] = Tensor::Zeros({6});
  const absl::Status status = net.LoadStateDict(state);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string text = status.ToString();
  for (const char* part : {"missing conv.bias", "unexpected fc.weight",
                           "tail.0.bias (module [5], state [6])"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(net.Parameters()[0].tensor().ToVector<float>(), before);
}

TEST(Module, LoadingLenientlyPassesOverNamesButNotShapes) {
  Net net(1);
  StateMap state;
  state["conv.bias"] = Tensor::Full({4}, 3);
  state["fc.weight"] = Tensor::Zeros({1});
  ASSERT_TRUE(net.LoadStateDict(state, /*strict=*/false).ok());
  EXPECT_EQ(net.StateDict()["conv.bias"].ToVector<float>()[3], 3);
  state["conv.bias"] = Tensor::Zeros({5});
  EXPECT_FALSE(net.LoadStateDict(state, /*strict=*/false).ok());
}

TEST(Module, LoadingCastsToTheModulesType) {
  Generator generator(0);
  Linear linear(2, 1, generator);
  StateMap state;
  state["weight"] = Tensor::From<double>({1.5, -2.5}, {1, 2});
  state["bias"] = Tensor::From<double>({0.25});
  ASSERT_TRUE(linear.LoadStateDict(state).ok());
  EXPECT_EQ(linear.weight().dtype(), DType::kF32);
  EXPECT_EQ(linear.weight().tensor().ToVector<float>(),
            std::vector<float>({1.5f, -2.5f}));
}

TEST(Module, ToChangesFloatingTensorsAlone) {
  Net net(0);
  net.To(DType::kF64);
  for (const auto& [name, value] : net.StateDict()) {
    EXPECT_EQ(value.dtype(),
              name == "norm.num_batches_tracked" ? DType::kI64 : DType::kF64)
        << name;
  }
  for (const Variable& p : net.Parameters()) {
    EXPECT_TRUE(p.requires_grad());
    EXPECT_TRUE(p.is_leaf());
  }
  const Variable x(Tensor::Ones({1, 2, 5, 5}, {.dtype = DType::kF64}));
  EXPECT_EQ(net.Forward(x).dtype(), DType::kF64);
}

TEST(Module, LowerPrecisionPassesOverNorms) {
  Generator generator(0);
  Sequential net;
  net.Emplace<Conv2d>(3, 4, Conv2dOptions{.kernel = {3, 3}}, generator);
  net.Emplace<BatchNorm2d>(4);
  net.LowerPrecision(DType::kBF16);
  for (const auto& [name, tensor] : net.StateDict()) {
    const DType expected = name == "1.num_batches_tracked" ? DType::kI64
                           : name[0] == '0'                ? DType::kBF16
                                                           : DType::kF32;
    EXPECT_EQ(tensor.dtype(), expected) << name;
  }
  for (const Variable& parameter : net.Parameters())
    EXPECT_TRUE(parameter.requires_grad());
  const Variable y =
      net.Forward(RandNormal({2, 3, 5, 5}, generator).To(DType::kBF16));
  EXPECT_EQ(y.dtype(), DType::kBF16);
  Variable(y).Backward(Tensor::Ones(y.shape(), {.dtype = DType::kBF16}));
  for (const Variable& parameter : net.Parameters())
    EXPECT_EQ(parameter.grad().dtype(), parameter.dtype());
  EXPECT_THROW(net.LowerPrecision(DType::kI64), Error);
}

TEST(Module, KnowsWhereItIsAndPlacesWhatItIsGiven) {
  Generator generator(0);
  Sequential net;
  EXPECT_EQ(net.device(), Device::Cpu());
  net.Emplace<Linear>(3, 2, generator);
  net.To(test::TestDevice());
  EXPECT_EQ(net.device(), test::TestDevice());
  const Variable x(Tensor::Ones({4, 3}), true);
  EXPECT_EQ(net.Placed(x).dtype(), DType::kF32);
  EXPECT_EQ(net.Placed(x).tensor().device(), test::TestDevice());
  net.LowerPrecision(DType::kBF16);
  const Variable y = net.Forward(net.Placed(x));
  EXPECT_EQ(y.dtype(), DType::kBF16);
  Variable(y).Backward(
      test::Put(Tensor::Ones(y.shape(), {.dtype = DType::kBF16})));
  EXPECT_EQ(x.grad().dtype(), DType::kF32);
  EXPECT_EQ(x.grad().device(), Device::Cpu());
  // One without tensors of its own moves along.
  Sequential nested;
  nested.Add("inner", std::make_shared<Sequential>());
  nested.To(test::TestDevice());
  EXPECT_EQ(nested.children().front().value->device(), test::TestDevice());
  const Tensor labels = Tensor::Zeros({4}, {.dtype = DType::kI64});
  EXPECT_EQ(net.Placed(labels).dtype(), DType::kI64);
}

TEST(PostponedStatistics, MoveLaterAsTheyWouldHaveMoved) {
  BatchNorm2d now(3), later(3);
  PostponedStatistics postponed;
  Generator generator(0);
  for (int batch = 0; batch < 11; ++batch) {
    const Tensor x = RandNormal({4, 3, 2, 2}, generator);
    const Variable expected = now.Forward(x);
    const PostponedStatistics::Scope scope(postponed);
    EXPECT_TRUE(ops::BitEqual(later.Forward(x).tensor(), expected.tensor()));
  }
  const StateMap before = BatchNorm2d(3).StateDict();
  for (const auto& [name, tensor] : later.StateDict())
    EXPECT_TRUE(ops::BitEqual(tensor, before.at(name))) << name;
  postponed.Apply();
  const StateMap expected = now.StateDict();
  for (const auto& [name, tensor] : later.StateDict()) {
    EXPECT_TRUE(ops::AllClose(tensor.To(DType::kF64),
                              expected.at(name).To(DType::kF64), 1e-5, 1e-6))
        << name;
  }
  postponed.Apply();  // nothing is left
  EXPECT_EQ(PostponedStatistics::Current(), nullptr);
  EXPECT_EQ(later.StateDict().at("num_batches_tracked").Item(), 11);
}

TEST(PostponedStatistics, OfPartsMoveAsThoseOfTheWhole) {
  BatchNorm2d whole(3), parts(3);
  whole.To(test::TestDevice());
  parts.To(test::TestDevice());
  PostponedStatistics postponed;
  Generator generator(0);
  for (int batch = 0; batch < 2; ++batch) {
    const Tensor x = test::Put(RandNormal({9, 3, 2, 2}, generator));
    whole.Forward(x);
    const PostponedStatistics::Scope scope(postponed);
    for (const auto& [begin, end] : {std::pair(0, 1), {1, 5}, {5, 9}})
      parts.Forward(x.Slice(0, begin, end));
    postponed.ApplyAsOne();
  }
  const StateMap expected = whole.StateDict();
  for (const auto& [name, tensor] : parts.StateDict()) {
    EXPECT_TRUE(ops::AllClose(tensor.To(DType::kF64),
                              expected.at(name).To(DType::kF64), 1e-5, 1e-6))
        << name;
  }
  EXPECT_EQ(parts.StateDict().at("num_batches_tracked").Item(), 2);
}

TEST(Module, ToFormatMovesFourDimensionalTensorsAlone) {
  Net net(0);
  const Tensor before = net.Parameters()[0].tensor();
  net.ToFormat(MemoryFormat::kChannelsLast);
  const Tensor after = net.Parameters()[0].tensor();
  EXPECT_TRUE(after.IsContiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(after.ToVector<float>(), before.ToVector<float>());
  EXPECT_TRUE(net.StateDict()["tail.0.weight"].IsContiguous());
}

TEST(Module, HandlesFromBeforeFollowItWhereverItMoves) {
  Net net(0);
  const std::vector<Variable> before = net.Parameters();
  net.Parameters()[0].set_grad(Tensor::ZerosLike(before[0].tensor()));
  net.To(DType::kF32);  // moves nothing
  EXPECT_TRUE(before[0].grad().defined());
  net.ToFormat(MemoryFormat::kChannelsLast);
  net.To(DType::kF64);
  const std::vector<Variable> after = net.Parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].id(), after[i].id());
    EXPECT_EQ(before[i].dtype(), DType::kF64);
    EXPECT_FALSE(before[i].grad().defined());
  }
}

TEST(Module, ZeroGradForgetsGradients) {
  Generator generator(0);
  Linear linear(3, 1, generator);
  linear.Forward(Variable(Tensor::Ones({1, 3}))).Backward();
  EXPECT_TRUE(linear.weight().grad().defined());
  linear.ZeroGrad();
  EXPECT_FALSE(linear.weight().grad().defined());
}

class Doubled final : public Module {
 public:
  Doubled() {
    RegisterParameter("x", Tensor::Ones({1}));
    RegisterParameter("x", Tensor::Ones({1}));
  }
  Variable Forward(const Variable& x) override { return x; }
};

TEST(ModuleDeathTest, ANameServesOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Doubled(), "taken");
}

TEST(Module, GeneratorsGoOnFromAState) {
  const auto make = [](uint64_t seed) {
    auto net = std::make_shared<Sequential>();
    net->Emplace<Dropout>(0.5, seed);
    net->Emplace<ReLU>();
    net->Emplace<Dropout>(0.5, ~seed);
    return net;
  };
  const Tensor x = Tensor::Ones({64});
  const auto net = make(1), other = make(2);
  net->Forward(x);
  const StateMap state = net->GeneratorState();
  EXPECT_EQ(state.size(), 2u);
  EXPECT_EQ(state.count("0.0"), 1u);
  EXPECT_EQ(state.count("2.0"), 1u);
  ASSERT_TRUE(other->LoadGeneratorState(state).ok());
  EXPECT_TRUE(
      ops::BitEqual(net->Forward(x).tensor(), other->Forward(x).tensor()));
  const StateMap before = other->GeneratorState();
  EXPECT_TRUE(absl::IsInvalidArgument(
      other->LoadGeneratorState({{"0.0", state.at("0.0")}})));
  EXPECT_TRUE(absl::IsInvalidArgument(other->LoadGeneratorState(
      {{"0.0", Tensor::Ones({2})}, {"2.0", Tensor::Ones({2})}})));
  EXPECT_TRUE(
      ops::BitEqual(other->GeneratorState().at("0.0"), before.at("0.0")));
}

}  // namespace
}  // namespace baton::nn
