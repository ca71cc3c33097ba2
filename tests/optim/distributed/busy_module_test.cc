// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "autograd/functions/reduce.h"
#include "models/distributed/pipeline.h"
#include "optim/distributed/optimizer.h"
#include "optim/distributed/registry.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::FragileStage;
using ::testing::HasSubstr;

void AddBusyTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<FragileStage>(registry);
  RegisterOptimizers(registry);
}

// While a module's forward or backward lasts.
class BusyModuleTest : public ::testing::Test {
 protected:
  BusyModuleTest() : cluster_(2, AddBusyTypes) { FragileStage::ResetGate(); }
  rpc::Agent& agent() { return cluster_.alice(); }
  Module<FragileStage> ModuleAtBob(FragileStage::Fault fault) {
    return *Module<FragileStage>::Create(agent(), "bob", fault, 0).Await();
  }
  // Of another context, by an optimizer that was there before.
  void ExpectNoStep(Optimizer<optim::Sgd>& sgd, const char* during) {
    ASSERT_TRUE(FragileStage::TheGate().reached.future().Await().ok());
    Context other(agent());
    absl::Status step =
        sgd.Step(other, {.timeout = std::chrono::milliseconds(300)});
    EXPECT_TRUE(absl::IsDeadlineExceeded(step)) << step;
    EXPECT_THAT(std::string(step.message()), HasSubstr(during));
    FragileStage::TheGate().opened.Set(absl::OkStatus());
    absl::Status next = sgd.Step(other);
    EXPECT_TRUE(next.ok()) << next;
  }

  testing::TrainingCluster cluster_;
  const Variable x_{test::Put(Tensor::Ones({2, 2})), true};
};

TEST_F(BusyModuleTest, IsNotSteppedDuringAForward) {
  auto module = ModuleAtBob(FragileStage::Fault::kWait);
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, {module.ref()});
  ASSERT_TRUE(sgd.Ready().Await().ok());
  Context ctx(agent());
  auto y = module.Forward(ctx, x_);
  ExpectNoStep(sgd, "FragileStage::Forward of worker alice");
  EXPECT_TRUE(y.Await().ok());
}

TEST_F(BusyModuleTest, IsNotSteppedDuringABackward) {
  auto module = ModuleAtBob(FragileStage::Fault::kWaitInBackward);
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, {module.ref()});
  ASSERT_TRUE(sgd.Ready().Await().ok());
  Context ctx(agent());
  auto y = module.Forward(ctx, x_).Await();
  ASSERT_TRUE(y.ok()) << y.status();
  auto backward = ctx.BackwardAsync({autograd::Sum(*y)});
  ExpectNoStep(sgd, "a backward of worker bob");
  EXPECT_TRUE(backward.Await().ok());
}

TEST_F(BusyModuleTest, IsNotSteppedWhileAPipelineRunsIt) {
  auto module = ModuleAtBob(FragileStage::Fault::kWait);
  Optimizer<optim::Sgd> sgd(agent(), {.lr = 0.1}, {module.ref()});
  ASSERT_TRUE(sgd.Ready().Await().ok());
  auto pipeline = *Pipeline::Make(agent(), {}, {module});
  std::thread trainer([&] {
    auto result = pipeline->Evaluate(x_.tensor());
    EXPECT_TRUE(result.ok()) << result.status();
  });
  ExpectNoStep(sgd, "StageGroup::Run of worker alice");
  trainer.join();
}

}  // namespace
}  // namespace baton::dist
