// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/torch/torch_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/nn/loss.h"
#include "models/torch/torch_tensor.h"
#include "optim/sgd.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using TorchValues = TorchModule::TorchValues;

// Layers with buffers of which one is i64, and nested names.
::torch::nn::Sequential MakeNet() {
  ::torch::manual_seed(7);
  return ::torch::nn::Sequential(
      ::torch::nn::Conv2d(::torch::nn::Conv2dOptions(3, 4, 3)),
      ::torch::nn::BatchNorm2d(4), ::torch::nn::ReLU(), ::torch::nn::Flatten(),
      ::torch::nn::Linear(4 * 4 * 4, 5));
}

at::Tensor TorchOf(const Tensor& tensor) { return ToTorch(tensor).clone(); }

bool SameBits(const Tensor& a, const at::Tensor& b) {
  return ops::BitEqual(a, FromTorch().Bring(b.contiguous()));
}

TorchModule Function(const TorchModule::TorchForward& forward) {
  return {std::make_shared<::torch::nn::Module>(), forward};
}

class NetTest : public ::testing::Test {
 protected:
  NetTest() : module_(net_), plain_(MakeNet()) {
    module_.To(test::TestDevice());
    plain_->to(ToTorch(x_).device());
  }
  // The plain module's loss and gradients.
  at::Tensor TrainPlain() {
    plain_->zero_grad();
    at::Tensor loss = ::torch::nn::functional::cross_entropy(
        plain_->forward(TorchOf(x_)), TorchOf(labels_));
    loss.backward();
    return loss.detach();
  }
  Variable Loss() { return CrossEntropy(module_(x_), labels_); }

  Generator generator_{3};
  const Tensor x_ = Put(RandNormal({8, 3, 6, 6}, generator_));
  const Tensor labels_ = Put(RandInt(0, 5, {8}, generator_));
  ::torch::nn::Sequential net_ = MakeNet();
  TorchModule module_;
  ::torch::nn::Sequential plain_;
};

TEST_F(NetTest, HasTorchsNamesInTorchsMemory) {
  std::vector<std::string> names;
  for (const auto& named : module_.NamedParameters())
    names.push_back(named.name);
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "1.weight", "1.bias",
                                 "4.weight", "4.bias"));
  module_(x_);  // after which torch's lie where Baton's do
  const StateMap state = module_.StateDict();
  for (const auto& item : net_->named_parameters())
    EXPECT_EQ(state.at(item.key()).raw_data(), item.value().data_ptr());
  for (const auto& item : net_->named_buffers())
    EXPECT_EQ(state.at(item.key()).raw_data(), item.value().data_ptr());
  EXPECT_EQ(state.at("1.num_batches_tracked").dtype(), DType::kI64);
  // What is loaded is torch's, too.
  ASSERT_TRUE(
      module_.LoadStateDict({{"4.bias", Tensor::Full({5}, 2)}}, false).ok());
  EXPECT_EQ(net_->named_parameters()["4.bias"].sum().item<double>(), 10);
}

TEST_F(NetTest, ForwardAndGradientsAreThoseOfTorchAlone) {
  const at::Tensor loss = TrainPlain();
  const Variable own = Loss();
  EXPECT_NEAR(own.tensor().Item(), loss.item<double>(), 1e-6);
  own.Backward();
  for (const auto& named : module_.NamedParameters()) {
    const at::Tensor expected = plain_->named_parameters()[named.name].grad();
    const at::Tensor got = ToTorch(named.value.grad());
    EXPECT_TRUE(at::allclose(got, expected, 1e-5, 1e-6)) << named.name;
  }
}

TEST_F(NetTest, TrainsAsTorchAlone) {
  optim::Sgd sgd(module_.Parameters(), {.lr = 0.1, .momentum = 0.9});
  ::torch::optim::SGD torchs(plain_->parameters(),
                             ::torch::optim::SGDOptions(0.1).momentum(0.9));
  double last = 0;
  for (int step = 0; step < 6; ++step) {
    const at::Tensor loss = TrainPlain();
    torchs.step();
    module_.ZeroGrad();
    const Variable own = Loss();
    own.Backward();
    sgd.Step();
    last = own.tensor().Item();
    EXPECT_NEAR(last, loss.item<double>(), 1e-4) << step;
  }
  EXPECT_LT(last, 0.5);
  EXPECT_EQ(module_.StateDict().at("1.num_batches_tracked").Item(), 6);
}

TEST_F(NetTest, EvalAndFrozenParametersHoldForTorch) {
  module_.Eval();
  plain_->eval();
  Variable y = module_(x_);
  EXPECT_TRUE(SameBits(y.tensor(), plain_->forward(TorchOf(x_)).detach()));
  EXPECT_EQ(module_.StateDict().at("1.num_batches_tracked").Item(), 0);
  for (Variable& parameter : module_.Parameters())
    parameter.set_requires_grad(false);
  EXPECT_FALSE(module_(x_).requires_grad());
  module_.Parameters()[4].set_requires_grad(true);
  Loss().Backward();
  EXPECT_FALSE(module_.Parameters()[0].grad().defined());
  EXPECT_TRUE(module_.Parameters()[4].grad().defined());
}

TEST_F(NetTest, WithoutGradientsNothingIsRecorded) {
  const NoGrad guard;
  EXPECT_FALSE(module_(x_).requires_grad());
}

TEST_F(NetTest, BackwardRunsTwiceWhereTheGraphIsRetained) {
  const Variable loss = Loss();
  loss.Backward(Tensor(), /*retain_graph=*/true);
  const Tensor once = module_.Parameters()[0].grad().Clone();
  loss.Backward();
  EXPECT_TRUE(
      ops::BitEqual(module_.Parameters()[0].grad(), ops::MulScalar(once, 2)));
  EXPECT_NE(ErrorOf([&] { loss.Backward(); }), "no error");
}

TEST_F(NetTest, WhatWasWrittenBetweenForwardAndBackwardIsAnError) {
  const Variable loss = Loss();
  module_.Parameters()[4].tensor().Fill(0);
  EXPECT_THAT(ErrorOf([&] { loss.Backward(); }), HasSubstr("torch_module"));
}

TEST_F(NetTest, OtherTensorsInThePlaceOfParametersHoldForTorch) {
  const Tensor before = module_(x_).tensor();
  module_.ToFormat(MemoryFormat::kChannelsLast);
  EXPECT_TRUE(
      at::allclose(ToTorch(module_(x_).tensor()), ToTorch(before), 1e-4, 1e-5));
  module_.To(DType::kF64);
  const Variable y = module_(module_.Placed(Variable(x_)));
  EXPECT_EQ(y.dtype(), DType::kF64);
  y.Backward(Tensor::Ones(
      y.shape(), {.dtype = DType::kF64, .device = test::TestDevice()}));
  EXPECT_EQ(module_.Parameters()[0].grad().dtype(), DType::kF64);
}

TEST_F(NetTest, ReplicaGivesGradientsToTheModuleItFollows) {
  TorchModule replica(MakeNet());
  replica.Follow(module_, test::TestDevice());
  CrossEntropy(replica(x_), labels_).Backward();
  EXPECT_TRUE(module_.Parameters()[0].grad().defined());
}

TEST_F(NetTest, TorchsErrorsAreErrors) {
  EXPECT_THAT(ErrorOf([&] {
                module_(Put(Tensor::Ones({2, 5, 6, 6})));
              }),
              ::testing::AllOf(HasSubstr("[torch_module]"),
                               HasSubstr("to have 3 channels, but got 5")));
}

TEST(TorchModule, GradientsOfSeveralValuesAreRight) {
  TorchModule module = Function([](const TorchValues& in) {
    return TorchValues{at::tanh(at::matmul(in[0], in[1])), in[0] * 2};
  });
  EXPECT_TRUE(testing::GradCheck(
      [&](const testing::Variables& in) {
        const auto out = module.ForwardAll({in[0], in[1]});
        return out[0] + out[1];
      },
      {testing::Random({3, 3}), testing::Random({3, 3})}));
}

TEST(TorchModule, AValueThatIsPassedOnSharesItsStorage) {
  TorchModule module = Function([](const TorchValues& in) {
    return TorchValues{in[0].view({6}), in[0].select(0, 1)};
  });
  const Variable x(Put(Tensor::Ones({2, 3})), true);
  const auto y = module.ForwardAll({x});
  EXPECT_EQ(y[0].tensor().storage(), x.tensor().storage());
  EXPECT_EQ(y[1].tensor().storage(), x.tensor().storage());
  EXPECT_EQ(y[1].tensor().offset(), 3);
}

// One tensor of torch's may be the gradient of two inputs: what is added to the
// one must not come to the other.
TEST(TorchModule, GradientsInOneMemoryAreNotAddedToEachOther) {
  TorchModule module = Function(
      [](const TorchValues& in) { return TorchValues{in[0] + in[1]}; });
  const Variable a(Put(Tensor::Ones({2})), true);
  const Variable b(Put(Tensor::Ones({2})), true);
  const Tensor dy = Put(Tensor::Ones({2}));
  for (int pass = 0; pass < 2; ++pass)
    module.ForwardAll({a, b})[0].Backward(dy);
  EXPECT_THAT(a.grad().ToVector<float>(), ElementsAre(2, 2));
  EXPECT_THAT(b.grad().ToVector<float>(), ElementsAre(2, 2));
  EXPECT_THAT(dy.ToVector<float>(), ElementsAre(1, 1));
}

TEST(TorchModule, IntegersAndUnusedValuesHaveNoGradient) {
  TorchModule module = Function([](const TorchValues& in) {
    return TorchValues{in[0].mul(in[1]), in[1] + 1};
  });
  const Variable x(Put(Tensor::Ones({2})), true);
  const Variable unused(Put(Tensor::Ones({2})), true);
  const auto y = module.ForwardAll(
      {x, Put(Tensor::Full({2}, 3, {.dtype = DType::kI64})), unused});
  EXPECT_FALSE(y[1].requires_grad());
  y[0].Backward(Put(Tensor::Ones({2})));
  EXPECT_THAT(x.grad().ToVector<float>(), ElementsAre(3, 3));
  EXPECT_FALSE(unused.grad().defined());
}

TEST(TorchModule, AModuleThatWritesItsInputIsAnError) {
  TorchModule module = Function(
      [](const TorchValues& in) { return TorchValues{in[0].relu_()}; });
  EXPECT_THAT(ErrorOf([&] { module(Put(Tensor::Ones({2}))); }),
              HasSubstr("wrote its input 0 in place"));
}

TEST(TorchModule, TiedParametersAreOne) {
  ::torch::nn::Linear first(4, 4), second(4, 4);
  second->weight = second->register_parameter("tied", first->weight);
  TorchModule module(::torch::nn::Sequential(first, second));
  EXPECT_THAT(module.StateDict(), Contains(::testing::Key("1.tied")));
  EXPECT_EQ(module.Parameters().size(), 4u);  // and second's former weight
  module(Put(Tensor::Ones({2, 4})));
}

}  // namespace
}  // namespace baton::nn
