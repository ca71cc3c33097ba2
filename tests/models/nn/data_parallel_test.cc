// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "core/cuda/memory.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/nn/batch_norm.h"
#include "models/nn/dropout.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "optim/sgd.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::Put;
using ::testing::HasSubstr;

class Net final : public Module {
 public:
  explicit Net(uint64_t seed)
      : generator_(seed),
        first_(MakeModule<Linear>("first", 6, 8, generator_)),
        last_(MakeModule<Linear>("last", 8, 3, generator_)) {}
  Variable Forward(const Variable& x) override {
    return last_(autograd::Relu(first_(x)));
  }

 private:
  Generator generator_;
  Linear& first_;
  Linear& last_;
};

// All GPUs, and the first of them twice; the CPU three times.
std::vector<Device> Devices() {
  const Device first = test::TestDevice();
  std::vector<Device> devices = {first, first};
  if (first.is_cpu()) devices.push_back(first);
  for (int i = 1; first.is_cuda() && i < cuda::DeviceCount(); ++i)
    devices.push_back(Device::Cuda(i));
  return devices;
}

template <typename M, typename... Args>
std::shared_ptr<M> MakeHere(const Args&... args) {
  auto module = std::make_shared<M>(args...);
  module->To(test::TestDevice());
  return module;
}

std::shared_ptr<Module> MakeOther() { return std::make_shared<Net>(99); }

Tensor Inputs(int64_t rows) {
  Generator generator(5);
  return Put(RandNormal({rows, 6}, generator));
}

TEST(DataParallel, GivesWhatTheModuleGivesAlone) {
  for (const int64_t rows : {1, 2, 7, 12}) {
    const auto alone = MakeHere<Net>(1), module = MakeHere<Net>(1);
    DataParallel parallel(module, MakeOther, {.devices = Devices()});
    const Variable x(Inputs(rows), true), same(Inputs(rows), true);
    for (int round = 0; round < 2; ++round) {
      const Variable expected = (*alone)(x), got = parallel(same);
      EXPECT_EQ(got.tensor().device(), Devices().front());
      EXPECT_TRUE(ops::AllClose(got.tensor(), expected.tensor(), 1e-5, 1e-6));
      autograd::Sum(autograd::Mul(expected, expected)).Backward();
      autograd::Sum(autograd::Mul(got, got)).Backward();
    }
    EXPECT_TRUE(ops::AllClose(same.grad(), x.grad(), 1e-4, 1e-5));
    const auto expected = alone->Parameters(), got = module->Parameters();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].grad().device(), Devices().front());
      EXPECT_TRUE(ops::AllClose(got[i].grad(), expected[i].grad(), 1e-4, 1e-4))
          << i << " of " << rows;
    }
  }
}

TEST(DataParallel, IsTrainedAsTheModuleIsAlone) {
  const auto alone = MakeHere<Net>(1), module = MakeHere<Net>(1);
  DataParallel parallel(module, MakeOther, {.devices = Devices()});
  Generator generator(3);
  const Tensor labels = Put(RandInt(0, 3, {12}, generator));
  const auto train = [&](Module& model) {
    optim::Sgd sgd(model.Parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 5; ++step) {
      sgd.ZeroGrad();
      autograd::CrossEntropy(model(Inputs(12)), labels).Backward();
      sgd.Step();
    }
  };
  train(*alone);
  train(parallel);
  const StateMap expected = alone->StateDict();
  for (const auto& [name, value] : parallel.StateDict()) {
    ASSERT_EQ(name.rfind("module.", 0), 0u);
    EXPECT_TRUE(ops::AllClose(value, expected.at(name.substr(7)), 1e-4, 1e-5));
  }
}

TEST(DataParallel, TakesTheStepThatTheGuideShows) {
  Generator generator(3);
  const std::vector<Device> devices = Devices();
  const Tensor images = Inputs(12);
  const Tensor labels = Put(RandInt(0, 3, {12}, generator));
  // [step]
  const auto make = [] { return std::make_shared<Net>(1); };
  const auto net = make();
  net->To(devices[0]);
  nn::DataParallel parallel(net, make, {.devices = devices});
  optim::Sgd sgd(parallel.Parameters(), {.lr = 0.1});
  nn::CrossEntropy(parallel(images), labels).Backward();
  sgd.Step();
  // [end]
  const auto alone = MakeHere<Net>(1);
  optim::Sgd sgd_alone(alone->Parameters(), {.lr = 0.1});
  nn::CrossEntropy((*alone)(images), labels).Backward();
  sgd_alone.Step();
  const StateMap expected = alone->StateDict();
  for (const auto& [name, value] : net->StateDict())
    EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-4, 1e-5)) << name;
}

TEST(DataParallel, RunningStatisticsAreThoseOfTheFirstDevice) {
  const auto alone = MakeHere<BatchNorm2d>(2),
             module = MakeHere<BatchNorm2d>(2);
  DataParallel parallel(module, [] { return std::make_shared<BatchNorm2d>(2); },
                        {.devices = {Devices()[0], Devices()[1]}});
  Generator generator(1);
  const Tensor x = Put(RandNormal({6, 2, 3, 3}, generator));
  const Variable first = (*alone)(x.Slice(0, 0, 3));
  const Variable all = parallel(x);
  EXPECT_TRUE(ops::BitEqual(all.tensor().Slice(0, 0, 3), first.tensor()));
  const StateMap expected = alone->StateDict();
  for (const auto& [name, value] : module->StateDict())
    EXPECT_TRUE(ops::BitEqual(value, expected.at(name))) << name;
  // In eval all have these.
  alone->Eval();
  parallel.Eval();
  EXPECT_TRUE(
      ops::AllClose(parallel(x).tensor(), (*alone)(x).tensor(), 1e-5, 1e-6));
}

TEST(DataParallel, DevicesDrawDifferentNumbers) {
  DataParallel parallel(std::make_shared<Dropout>(0.5, 7),
                        [] { return std::make_shared<Dropout>(0.5, 7); },
                        {.devices = {Device::Cpu(), Device::Cpu()}});
  const Tensor y = parallel(Tensor::Ones({2, 64})).tensor();
  EXPECT_FALSE(ops::BitEqual(y.Slice(0, 0, 1), y.Slice(0, 1, 2)));
}

// Takes two values and gives their sum and the number of rows.
class SumAndRows final : public Module {
 public:
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override {
    const Variable& x = values[0];
    const auto rows = static_cast<double>(x.dim(0));
    return {autograd::Add(x, values[1]),
            Tensor::Full({}, rows, {.device = x.tensor().device()})};
  }
};

TEST(DataParallel, TakesAndGivesSeveralValues) {
  const auto module = std::make_shared<SumAndRows>();
  module->To(test::TestDevice());
  DataParallel parallel(module, [] { return std::make_shared<SumAndRows>(); },
                        {.devices = {Devices()[0], Devices()[1]},
                         .output_device = Device::Cpu()});
  const auto results = parallel(std::vector<Variable>{Inputs(5), Inputs(5)});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].tensor().device().is_cpu());
  EXPECT_TRUE(ops::BitEqual(results[0].tensor(),
                            ops::MulScalar(Inputs(5), 2).To(Device::Cpu())));
  EXPECT_EQ(results[1].tensor().ToVector<float>(), std::vector<float>({3, 2}));
  EXPECT_THAT(ErrorOf([&] {
                parallel(std::vector<Variable>{Inputs(5), Inputs(4)});
              }),
              HasSubstr("5 rows each"));
}

TEST(DataParallel, OtherThreadsHaveTheScopesOfTheCaller) {
  DataParallel parallel(MakeHere<Net>(1), MakeOther, {.devices = Devices()});
  {
    const NoGrad no_grad;
    EXPECT_FALSE(parallel(Inputs(9)).requires_grad());
  }
  const AutocastScope autocast(DType::kBF16);
  EXPECT_EQ(parallel(Inputs(9)).dtype(), DType::kBF16);
}

class Fragile final : public Module {
 public:
  Variable Forward(const Variable& x) override {
    Require(x.dim(0) == 3, "fragile", "it broke");
    return x;
  }
};

TEST(DataParallel, SaysWhereItWentWrong) {
  const auto make = [] { return std::make_shared<Fragile>(); };
  DataParallel parallel(make(), make,
                        {.devices = {Device::Cpu(), Device::Cpu()}});
  EXPECT_THAT(ErrorOf([&] {
                parallel(Tensor::Ones({5, 2}));
              }),
              HasSubstr("part 1 on cpu: [fragile] it broke"));
  EXPECT_EQ(parallel(Tensor::Ones({6, 2})).dim(0), 6);
}

TEST(DataParallel, RefusesWhatCannotBe) {
  const auto net = std::make_shared<Net>(1);
  EXPECT_THAT(ErrorOf([&] { DataParallel(net, MakeOther, {}); }),
              HasSubstr("no devices"));
  EXPECT_THAT(ErrorOf([&] {
                DataParallel(net, MakeOther, {.devices = {Device::Cuda(0)}});
              }),
              HasSubstr("the module is on cpu"));
  DataParallel other(net, [] { return std::make_shared<BatchNorm2d>(3); },
                     {.devices = {Device::Cpu(), Device::Cpu()}});
  EXPECT_THAT(ErrorOf([&] {
                other(Tensor::Ones({4, 6}));
              }),
              HasSubstr("[follow]"));
}

}  // namespace
}  // namespace baton::nn
