// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/nn/loss_module.h"
#include "models/nn/sequential.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// Hooks of modules that live at another worker.
namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;

class Factor final : public nn::Module {
 public:
  Variable Forward(const Variable& x) override { return x * factor_; }

 private:
  Variable& factor_ = RegisterParameter("factor", Tensor::Full({1}, 3));
};

// y = 9 x, by two parts.
class Factors final : public nn::Module {
 public:
  Factors() {
    parts_.Emplace<Factor>();
    parts_.Emplace<Factor>();
  }
  Variable Forward(const Variable& x) override { return parts_(x); }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Factors::Forward>;

 private:
  nn::Sequential& parts_ = MakeModule<nn::Sequential>("parts");
};

Variable TwiceTheInput(nn::Module&, const Variable& x) { return x * 2.0; }
Variable FiveTimes(nn::Module&, const Variable&, const Variable& y) {
  return y * 5.0;
}
Tensor RefuseGradient(const Tensor&, const Tensor&) {
  Fail("watch", "not a number");
}
Variable Unregistered(nn::Module&, const Variable& x) { return x; }
Variable RefuseInput(nn::Module&, const Variable&) {
  Fail("check", "not for me");
}

class RemoteModuleHooksTest
    : public ::testing::TestWithParam<testing::TransportKind> {
 protected:
  RemoteModuleHooksTest()
      : cluster_(
            2,
            [](rpc::Registry& registry) {
              registry.Add<Stage>();
              RegisterModule<Factors>(registry);
              RegisterModuleHook<Factors, &TwiceTheInput>(registry);
              RegisterModuleHook<Factors, &FiveTimes>(registry);
              RegisterModuleHook<Factors, &RefuseGradient>(registry);
              RegisterModuleHook<Factors, &RefuseInput>(registry);
            },
            GetParam()),
        module_(*Module<Factors>::Create(cluster_.alice(), "bob").Await()) {}
  // Of x = 1; its gradient is left in `gradient_`.
  absl::StatusOr<double> Step() {
    Variable x(test::Put(Tensor::Ones({1})), true);
    Context ctx(cluster_.alice());
    ASSIGN_OR_RETURN(Variable y, module_.Forward(ctx, x).Await());
    RETURN_IF_ERROR(ctx.Backward(autograd::Sum(y)));
    gradient_ = ctx.GradientOf(x).Item();
    return y.tensor().Item();
  }
  testing::TrainingCluster cluster_;
  Module<Factors> module_;
  double gradient_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, RemoteModuleHooksTest, testing::kTransports,
                         testing::TransportName);

TEST_P(RemoteModuleHooksTest, AreCalledThereUntilTheyAreRemoved) {
  EXPECT_EQ(*Step(), 9);
  auto before = module_.AddHook<&TwiceTheInput>().Await();
  ASSERT_THAT(before, IsOk());
  auto after = module_.AddHook<&FiveTimes>("parts.1").Await();
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(*Step(), 90);
  EXPECT_EQ(gradient_, 90);
  ASSERT_THAT(before->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(*Step(), 45);
  ASSERT_THAT(after->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(*Step(), 9);
}

TEST_P(RemoteModuleHooksTest, ThatThrowEndTheForwardOrTheBackward) {
  auto hooks = module_.AddHook<&RefuseGradient>("parts.0").Await();
  ASSERT_THAT(hooks, IsOk());
  const auto backward = Step();
  EXPECT_THAT(backward,
              Fails(StatusCode::kInvalidArgument, "bob, FinishBackward"));
  EXPECT_THAT(backward,
              Fails(StatusCode::kInvalidArgument, "hook RefuseGradient"));
  ASSERT_THAT(hooks->Async<&RemoteHooks::Remove>().Await(), IsOk());
  hooks = module_.AddHook<&RefuseInput>().Await();
  ASSERT_THAT(hooks, IsOk());
  EXPECT_THAT(Step(), Fails(StatusCode::kInvalidArgument, "hook RefuseInput"));
  ASSERT_THAT(hooks->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(*Step(), 9);
}

TEST_P(RemoteModuleHooksTest, ThatNobodyRegisteredAreNamedWithTheLineToAdd) {
  EXPECT_THAT(
      module_.AddHook<&Unregistered>().Await(),
      Fails(StatusCode::kUnimplemented,
            "bob, Unregistered: not registered on this worker: call "
            "dist::RegisterModuleHook<Factors, &Unregistered>(registry) before "
            "joining, in every process"));
}

using Variables = std::vector<Variable>;
Variables TwiceTheFirst(nn::Module&, const Variables& values) {
  Variables others = values;
  others[0] = others[0] * 2.0;
  return others;
}
std::vector<Tensor> NoGradient(const std::vector<Tensor>& of_values,
                               const std::vector<Tensor>&) {
  std::vector<Tensor> none;
  for (const Tensor& gradient : of_values)
    none.push_back(gradient.defined() ? Tensor::ZerosLike(gradient) : Tensor());
  return none;
}

// Of x and y: x y and x, without a Forward.
class Pair final : public nn::Module {
 public:
  Variables ForwardAll(const Variables& values) override {
    return {values.at(0) * values.at(1) * factor_, values.at(0)};
  }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Pair::ForwardAll>;

 private:
  Variable& factor_ = RegisterParameter("factor", Tensor::Full({1}, 1));
};

// The sum of the first output.
class FirstOfTwo final : public nn::LossModule {
 public:
  Variable LossOfAll(const std::vector<Variable>& outputs,
                     const Tensor&) override {
    return autograd::Sum(outputs.at(0));
  }
  using Exports = rpc::Methods<rpc::kConstructor<>>;
};

// The products of two stages of pairs, the second one at carol.
class HooksOfPairs : public ::testing::Test {
 protected:
  HooksOfPairs()
      : cluster_(3, [](rpc::Registry& registry) {
          RegisterPipeline(registry);
          RegisterModule<Pair>(registry);
          RegisterLoss<FirstOfTwo>(registry);
          RegisterModuleHook<Pair, &TwiceTheFirst>(registry);
          RegisterModuleHook<Pair, &NoGradient>(registry);
          registry.AddFunction<&testing::GradientsAt<Pair>>();
        }) {
    for (const char* worker : {"bob", "carol"})
      stages_.push_back(
          *Module<Pair>::Create(cluster_.alice(), worker).Await());
  }
  double GradientOfFactor(const Context& ctx, const Module<Pair>& stage) {
    const auto gradients =
        cluster_.alice()
            .Async<&testing::GradientsAt<Pair>>(stage.owner(), ctx, stage.ref())
            .Await();
    EXPECT_THAT(gradients, IsOk());
    return gradients->at(0).Item();
  }
  testing::TrainingCluster cluster_;
  std::vector<Module<Pair>> stages_;
};

TEST_F(HooksOfPairs, AreCalledInThePipelineThatTheStagesArePartOf) {
  auto before = stages_[1].AddHook<&TwiceTheFirst>().Await();
  ASSERT_THAT(before, IsOk());
  auto pipeline =
      Pipeline::Make(cluster_.alice(), {.loss = Loss::kNone},
                     std::vector<StageModule>(stages_.begin(), stages_.end()));
  ASSERT_THAT(pipeline, IsOk());
  const auto product = [&] {
    const Tensor x = test::Put(Tensor::Full({1, 1}, 3));
    const Tensor y = test::Put(Tensor::Full({1, 1}, 5));
    const auto result = (*pipeline)->Evaluate({x, y});
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->outputs[0].Item() : 0;
  };
  EXPECT_EQ(product(), 2 * 3 * 5 * 3);
  ASSERT_THAT(before->Async<&RemoteHooks::Remove>().Await(), IsOk());
  EXPECT_EQ(product(), 3 * 5 * 3);
}

TEST_F(HooksOfPairs, OfGradientsSayWhatGoesBackToTheStageBefore) {
  auto hooks = stages_[1].AddHook<&NoGradient>().Await();
  ASSERT_THAT(hooks, IsOk());
  auto sum = Module<FirstOfTwo>::Create(cluster_.alice(), "carol").Await();
  ASSERT_THAT(sum, IsOk());
  auto pipeline = Pipeline::Make(cluster_.alice(), {.loss = *sum},
                                 {stages_[0], stages_[1]});
  ASSERT_THAT(pipeline, IsOk());
  const Tensor x = test::Put(Tensor::Full({1, 1}, 3));
  const Tensor y = test::Put(Tensor::Full({1, 1}, 5));
  for (const bool hooked : {true, false}) {
    const Context ctx(cluster_.alice());
    ASSERT_THAT((*pipeline)->Step(ctx, {x, y}, y), IsOk());
    EXPECT_EQ(GradientOfFactor(ctx, stages_[0]), hooked ? 0 : 3 * 5 * 3);
    EXPECT_EQ(GradientOfFactor(ctx, stages_[1]), 3 * 5 * 3);
    ASSERT_THAT(hooks->Async<&RemoteHooks::Remove>().Await(), IsOk());
  }
}

TEST_F(HooksOfPairs, AreCalledByCallsOfForwardAll) {
  auto before = stages_[0].AddHook<&TwiceTheFirst>().Await();
  ASSERT_THAT(before, IsOk());
  Context ctx(cluster_.alice());
  const Variables values = {Variable(test::Put(Tensor::Full({1}, 3)), true),
                            Variable(test::Put(Tensor::Full({1}, 5)))};
  const auto outputs =
      stages_[0].ref().Async<&Pair::ForwardAll>(ctx, values).Await();
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].tensor().Item(), 30);
  ASSERT_THAT(ctx.Backward(autograd::Sum((*outputs)[0])), IsOk());
  EXPECT_EQ(ctx.GradientOf(values[0]).Item(), 10);
}

TEST_P(RemoteModuleHooksTest, OfAPartThatIsNotThereAreRefused) {
  EXPECT_THAT(module_.AddHook<&FiveTimes>("parts.2").Await(),
              Fails(StatusCode::kNotFound, "parts.2"));
}

}  // namespace
}  // namespace baton::dist
