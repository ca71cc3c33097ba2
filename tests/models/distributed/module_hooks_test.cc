// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "models/distributed/module.h"
#include "models/nn/sequential.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
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
  static std::unique_ptr<Factors> Make() { return std::make_unique<Factors>(); }
  Factors() {
    parts_.Emplace<Factor>();
    parts_.Emplace<Factor>();
  }
  Variable Forward(const Variable& x) override { return parts_(x); }
  using Exports = rpc::Methods<&Factors::Make, &Factors::Forward>;

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

TEST_P(RemoteModuleHooksTest, OfAPartThatIsNotThereAreRefused) {
  EXPECT_THAT(module_.AddHook<&FiveTimes>("parts.2").Await(),
              Fails(StatusCode::kNotFound, "parts.2"));
}

}  // namespace
}  // namespace baton::dist
