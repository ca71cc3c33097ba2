// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/distributed/resnet_stage.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using ::testing::AllOf;
using testing::DenseStage;
using ::testing::HasSubstr;

absl::StatusOr<bool> IsTraining(const RRef<DenseStage>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  return local->is_training();
}

// Where the worker has it, and of which dtype its weights are.
absl::StatusOr<std::pair<Device, DType>> FormOf(
    const RRef<DenseStage>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  return std::pair(local->device(), local->Parameters().front().dtype());
}

// Of the worker itself and of its caller.
std::pair<std::string, std::string> DeclaredAt(rpc::CallContext& call) {
  return {call.compute().ToString(), call.caller().compute.ToString()};
}

int64_t ReplaysOf(const RRef<nn::Graphed>& replayed) {
  return (*replayed.LocalValue())->replays();
}

void AddModuleTypes(rpc::Registry& registry) {
  registry.Add<Stage>()
      .AddFunction<&ReplaysOf>()
      .AddFunction<&IsTraining>()
      .AddFunction<&FormOf>()
      .AddFunction<&DeclaredAt>();
  RegisterModule<DenseStage>(registry);
  RegisterModule<ResNetStage>(registry);
}

class ModuleTest : public ::testing::Test {
 protected:
  ModuleTest()
      : cluster_(2, AddModuleTypes),
        module_(
            *Module<DenseStage>::Create(agent(), "bob", 3, 2, true, 5).Await()),
        twin_(std::make_unique<DenseStage>(3, 2, true, 5)) {
    twin_->To(test::TestDevice());
  }
  rpc::Agent& agent() { return cluster_.alice(); }
  testing::TrainingCluster cluster_;
  Module<DenseStage> module_;
  std::unique_ptr<DenseStage> twin_;
};

TEST_F(ModuleTest, ForwardEqualsThatOfALocalModule) {
  Tensor x = test::Put(Tensor::Ones({2, 3}));
  Context ctx(agent());
  auto y = module_.Forward(ctx, x).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(ops::BitEqual(y->tensor(), twin_->Forward(x).tensor()));
  EXPECT_TRUE(y->requires_grad());
  EXPECT_EQ(module_.owner().name, "bob");
}

// Every way to give an input: here, later, and where another module is.
TEST_F(ModuleTest, AReplayedModuleGivesWhatItGivesWithoutReplay) {
  const auto front = module_.Replayed({.warm_up = 2}).Await();
  ASSERT_TRUE(front.ok()) << front.status();
  const auto back =
      Module<DenseStage>::Create(agent(), "bob", 2, 3, true, 6).Await();
  const auto last = back->Replayed({.warm_up = 2}).Await();
  ASSERT_TRUE(last.ok()) << last.status();
  constexpr int kSteps = 5;
  for (int step = 0; step < kSteps; ++step) {
    const auto gradient = [&](const auto& first, const auto& second,
                              const auto& x, const Variable& leaf) {
      Context ctx(agent());
      const auto y = second.Forward(ctx, first.Forward(ctx, x)).Await();
      EXPECT_TRUE(y.ok()) << y.status();
      EXPECT_TRUE(ctx.Backward(autograd::Sum(*y)).ok());
      return std::pair(y->tensor(), ctx.GradientOf(leaf));
    };
    const Variable x(test::Put(Tensor::Full({2, 3}, 1.F + step)), true);
    const auto plain = gradient(module_, *back, x, x);
    const auto replayed =
        step % 2 == 0 ? gradient(*front, *last, x, x)
                      : gradient(*front, *last, ReadyFuture<Variable>(x), x);
    EXPECT_TRUE(ops::BitEqual(replayed.first, plain.first));
    EXPECT_TRUE(ops::BitEqual(replayed.second, plain.second));
  }
  const auto replays =
      agent().Async<&ReplaysOf>("bob", *front->replayed()).Await();
  ASSERT_TRUE(replays.ok()) << replays.status();
  EXPECT_EQ(*replays, test::TestDevice().is_cuda() ? kSteps - 2 : 0);
}

TEST_F(ModuleTest, BadInputIsAnErrorThatNamesWorkerAndMethod) {
  Context ctx(agent());
  absl::Status status =
      module_.Forward(ctx, Tensor::Ones({2, 9})).Await().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("bob"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Forward"));
}

TEST_F(ModuleTest, ChangesBetweenTrainingAndEvaluation) {
  auto training = [&] {
    return *agent().Async<&IsTraining>("bob", module_.ref()).Await();
  };
  EXPECT_TRUE(training());
  ASSERT_TRUE(module_.Eval().Await().ok());
  EXPECT_FALSE(training());
  ASSERT_TRUE(module_.Train().Await().ok());
  EXPECT_TRUE(training());
}

TEST_F(ModuleTest, StateTravelsBothWays) {
  EXPECT_EQ(*module_.NumParameters().Await(), 8);
  nn::StateMap state = *module_.StateDict().Await();
  EXPECT_TRUE(ops::BitEqual(state.at("linear.weight"),
                            twin_->StateDict().at("linear.weight")));
  const Tensor sevens = test::Put(Tensor::Full({2}, 7));
  state["linear.bias"] = sevens;
  ASSERT_TRUE(module_.LoadStateDict(state).Await().ok());
  nn::StateMap loaded = *module_.StateDict().Await();
  EXPECT_TRUE(ops::BitEqual(loaded.at("linear.bias"), sevens));
  state.erase("linear.bias");
  absl::Status status = module_.LoadStateDict(state).Await();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("linear.bias"));
  EXPECT_TRUE(module_.LoadStateDict(state, false).Await().ok());
}

TEST_F(ModuleTest, StatesTravelWithinTheCallersTimeNotTheAgents) {
  const rpc::CallOptions patient{.timeout = std::chrono::seconds(9)};
  agent().set_default_timeout(std::chrono::milliseconds(0));
  auto state = module_.StateDict(patient).Await();
  ASSERT_TRUE(state.ok()) << state.status();
  absl::Status loaded = module_.LoadStateDict(*state, true, patient).Await();
  EXPECT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(agent().default_timeout(), std::chrono::milliseconds(0));
}

TEST_F(ModuleTest, AFailedMakeIsTheCreatorsError) {
  models::ResNetOptions options;
  options.depth = 19;
  auto made = Module<ResNetStage>::Create(agent(), "bob", options,
                                          std::vector<std::string>{}, 0)
                  .Await();
  EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
  EXPECT_FALSE(
      Module<DenseStage>::Create(agent(), "zoe", 3, 2, true, 5).Await().ok());
}

// No machine has so many.
constexpr Device kNoGpu = Device::Cuda(99);

class PlacementTest : public ::testing::Test {
 protected:
  using Dense = Module<DenseStage>;
  explicit PlacementTest(const rpc::Compute& bobs = {test::TestDevice()})
      : cluster_(3, AddModuleTypes, testing::TransportKind::kInProcess,
                 {{"bob", bobs}}) {}
  rpc::Agent& agent() { return cluster_.alice(); }
  auto FormOfModule(const Dense& module) {
    return agent().Async<&FormOf>(module.owner(), module.ref()).Await();
  }
  testing::TrainingCluster cluster_;
};
struct WithoutGpu : PlacementTest {
  WithoutGpu() : PlacementTest({.device = kNoGpu}) {}
};
struct WithBf16 : PlacementTest {
  WithBf16() : PlacementTest({test::TestDevice(), DType::kBF16}) {}
};

TEST_F(PlacementTest, CreatePlacesOnTheWorkersDevice) {
  const auto module = Dense::Create(agent(), "bob", 3, 2, true, 5).Await();
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(FormOfModule(*module)->first, test::TestDevice());
}

TEST_F(WithoutGpu, CreateFailsUnlessItNamesAnotherDevice) {
  const auto made = Dense::Create(agent(), "bob", 3, 2, true, 5).Await();
  EXPECT_FALSE(made.ok());
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("Make<"));
  const auto on_cpu =
      Dense::Create(agent(), "bob", {.device = Device::Cpu()}, 3, 2, true, 5)
          .Await();
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  EXPECT_EQ(FormOfModule(*on_cpu)->first, Device::Cpu());
}

TEST_F(WithoutGpu, WorkersKnowHowTheyAndOthersCompute) {
  EXPECT_EQ(agent().Find("bob")->compute.device, kNoGpu);
  const auto declared = agent().Async<&DeclaredAt>("bob").Await();
  ASSERT_TRUE(declared.ok()) << declared.status();
  EXPECT_EQ(declared->first, "cuda:99");
  EXPECT_EQ(declared->second, test::TestDevice().ToString());
}

TEST_F(PlacementTest, ToMovesTheModuleOrLeavesItWhereItIs) {
  const auto module = *Dense::Create(agent(), "bob", 3, 2, true, 5).Await();
  EXPECT_FALSE(module.To(kNoGpu).Await().ok());
  EXPECT_EQ(FormOfModule(module)->first, test::TestDevice());
  ASSERT_TRUE(module.To(Device::Cpu()).Await().ok());
  EXPECT_EQ(FormOfModule(module)->first, Device::Cpu());
  ASSERT_TRUE(module.To(test::TestDevice()).Await().ok());
  EXPECT_EQ(FormOfModule(module)->first, test::TestDevice());
  Context ctx(agent());
  EXPECT_TRUE(module.Forward(ctx, Tensor::Ones({2, 3})).Await().ok());
}

TEST_F(WithBf16, CreateGivesTheWorkersDTypeUnlessItNamesAnother) {
  const auto half = *Dense::Create(agent(), "bob", 3, 2, true, 5).Await();
  const auto full =
      *Dense::Create(agent(), "bob", {.dtype = DType::kF32}, 3, 2, true, 5)
           .Await();
  EXPECT_EQ(FormOfModule(half)->second, DType::kBF16);
  EXPECT_EQ(FormOfModule(full)->second, DType::kF32);
}

TEST_F(WithBf16, InputsAndGradientsKeepTheDTypeThatTheyHaveHere) {
  const auto half = *Dense::Create(agent(), "bob", 3, 2, true, 5).Await();
  const auto full =
      *Dense::Create(agent(), "bob", {.dtype = DType::kF32}, 2, 2, true, 5)
           .Await();
  const Variable x(test::Put(Tensor::Ones({4, 3})), true);
  Context ctx(agent());
  const auto y = full.Forward(ctx, half.Forward(ctx, x)).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->dtype(), DType::kF32);
  const absl::Status status = ctx.Backward(autograd::Sum(*y));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ctx.GradientOf(x).dtype(), DType::kF32);
}

// Of alice with the other workers.
uint64_t BytesThrough(const rpc::Agent& agent) {
  uint64_t bytes = 0;
  for (const rpc::ChannelInfo& channel : agent.GetDebugInfo().channels)
    bytes += channel.bytes_sent + channel.bytes_received;
  return bytes;
}

class PassedOn : public ::testing::TestWithParam<testing::TransportKind> {
 protected:
  PassedOn()
      : cluster_(3, AddModuleTypes, GetParam()),
        front_(*Module<DenseStage>::Create(agent(), "bob", 4, kWidth, true, 5)
                    .Await()),
        back_(*Module<DenseStage>::Create(agent(), "carol", kWidth, 2, true, 6)
                   .Await()) {}
  // A row of it is 64 KiB.
  static constexpr int64_t kWidth = 1 << 14;
  rpc::Agent& agent() { return cluster_.alice(); }
  testing::TrainingCluster cluster_;
  Module<DenseStage> front_, back_;
};
INSTANTIATE_TEST_SUITE_P(, PassedOn, testing::kTransports,
                         testing::TransportName);

TEST_P(PassedOn, AFutureGoesStraightFromWorkerToWorker) {
  const Tensor x = Tensor::Ones({16, 4});  // so the hidden value takes 1 MiB
  const uint64_t before = BytesThrough(agent());
  Context ctx(agent());
  const Future<Variable> hidden = front_.Forward(ctx, x);
  const auto y = back_.Forward(ctx, hidden).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*y)).ok());
  EXPECT_LT(BytesThrough(agent()) - before, uint64_t{64} << 10);
  // It comes here as soon as somebody waits for it.
  const auto here = hidden.Await();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_GT(BytesThrough(agent()) - before, uint64_t{1} << 20);
  const auto twin = std::make_unique<DenseStage>(4, kWidth, true, 5);
  twin->To(test::TestDevice());
  EXPECT_TRUE(
      ops::BitEqual(here->tensor(), twin->Forward(test::Put(x)).tensor()));
}

TEST_P(PassedOn, WhatIsShortComesWithTheAnswer) {
  Context ctx(agent());
  const auto calls_for = [&](const Module<DenseStage>& module, Shape shape) {
    const auto calls = [&] {
      return cluster_.at(module.owner().name).GetDebugInfo().calls_served;
    };
    const uint64_t before = calls();
    EXPECT_TRUE(module.Forward(ctx, Tensor::Ones(shape)).Await().ok());
    return calls() - before;
  };
  EXPECT_EQ(calls_for(back_, {1, kWidth}), 1u);
  EXPECT_EQ(calls_for(front_, {2, 4}), 2u);
}

TEST_P(PassedOn, AFutureThatIsUsedHereAndThereGetsBothGradients) {
  Context ctx(agent());
  const Variable x(test::Put(Tensor::Ones({2, 4})), true);
  const Future<Variable> hidden = front_.Forward(ctx, x);
  const auto y = back_.Forward(ctx, hidden).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  const absl::Status status =
      ctx.Backward(autograd::Sum(*y) + autograd::Sum(*hidden.Await()));
  ASSERT_TRUE(status.ok()) << status;
  const auto front = std::make_unique<DenseStage>(4, kWidth, true, 5);
  const auto back = std::make_unique<DenseStage>(kWidth, 2, true, 6);
  front->To(test::TestDevice());
  back->To(test::TestDevice());
  const Variable twin(x.tensor().Clone(), true);
  const Variable mid = front->Forward(twin);
  (autograd::Sum(back->Forward(mid)) + autograd::Sum(mid)).Backward();
  EXPECT_TRUE(ops::AllClose(ctx.GradientOf(x), twin.grad()));
}

TEST_P(PassedOn, AFutureOfTheSameWorkerStaysThere) {
  const auto next =
      *Module<DenseStage>::Create(agent(), "bob", kWidth, 2, true, 6).Await();
  const uint64_t before = BytesThrough(agent());
  Context ctx(agent());
  const auto y =
      next.Forward(ctx, front_.Forward(ctx, Tensor::Ones({16, 4}))).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_TRUE(ctx.Backward(autograd::Sum(*y)).ok());
  EXPECT_LT(BytesThrough(agent()) - before, uint64_t{64} << 10);
}

TEST_P(PassedOn, TheLossOfItsWorkerIsToldToWhoWaits) {
  Context ctx(agent());
  const Future<Variable> hidden = front_.Forward(ctx, Tensor::Ones({2, 4}));
  ASSERT_TRUE(front_.NumParameters().Await().ok());
  cluster_.Kill("bob");
  const absl::Status status = back_.Forward(ctx, hidden).Await().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("bob"));
}

TEST_P(PassedOn, WhatWentWrongBeforeNamesItsWorkerAndMethod) {
  Context ctx(agent());
  const Future<Variable> hidden = front_.Forward(ctx, Tensor::Ones({2, 9}));
  const absl::Status status = back_.Forward(ctx, hidden).Await().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("carol"), HasSubstr("bob"), HasSubstr("Forward"),
                    HasSubstr("linear")));
}

}  // namespace
}  // namespace baton::dist
