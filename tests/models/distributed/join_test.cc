// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/join.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "autograd/functions/reduce.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline_loss.h"
#include "models/nn/loss.h"
#include "models/nn/loss_module.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/collectives/collectives.h"
#include "rpc/rendezvous.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/toy_stages.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::DenseStage;
using testing::Fails;
using testing::FragileStage;
using testing::IsOk;
using Joined = absl::StatusOr<std::unique_ptr<rpc::Agent>>;

// A class that is no module.
class Tally {
 public:
  int64_t Add(int64_t n) { return sum_ += n; }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Tally::Add>;

 private:
  int64_t sum_ = 0;
};

struct SquareLoss final : nn::LossModule {
  Variable Loss(const Variable& outputs, const Tensor& targets) override {
    return nn::MseLoss(outputs, targets);
  }
  using Exports = rpc::Methods<rpc::kConstructor<>>;
};

int64_t Twice(int64_t n) { return 2 * n; }

// By RRef, where callers have a handle.
int64_t CountParameters(const RRef<DenseStage>& module) {
  const auto local = module.LocalValue();
  return local.ok() ? (*local)->NumParameters() : -1;
}

class JoinTest : public ::testing::Test {
 protected:
  JoinTest() : server_(*rpc::RendezvousServer::Make("127.0.0.1:0")) {}

  rpc::ClusterOptions By(const std::string& name, int world_size) {
    rpc::ClusterOptions options;
    options.name = name;
    options.rendezvous = server_->address();
    options.world_size = world_size;
    return options;
  }
  static Joined JoinAs(rpc::ClusterOptions options) {
    rpc::Registry registry;
    registry.AddFunction<&Twice>().AddFunction<&CountParameters>();
    return Join<DenseStage, SquareLoss, Tally>(std::move(options),
                                               std::move(registry));
  }
  // "alice", beside whom "bob" serves.
  void JoinBoth() {
    auto bob =
        std::async(std::launch::async, [&] { return JoinAs(By("bob", 2)); });
    Joined alice = JoinAs(By("alice", 2));
    Joined other = bob.get();
    ASSERT_THAT(alice, IsOk());
    ASSERT_THAT(other, IsOk());
    alice_ = *std::move(alice);
    bob_ = *std::move(other);
  }

  const std::unique_ptr<rpc::RendezvousServer> server_;
  std::unique_ptr<rpc::Agent> bob_, alice_;
};

TEST_F(JoinTest, TrainsAModuleThatOneCallMadeKnown) {
  ASSERT_NO_FATAL_FAILURE(JoinBoth());
  const auto module =
      Module<DenseStage>::Create(*alice_, "bob", 3, 2, false, 5).Await();
  ASSERT_THAT(module, IsOk());
  Optimizer<optim::Sgd> sgd(*alice_, {.lr = 0.1}, {*module});
  double first = 0, last = 0;
  for (int step = 0; step < 2; ++step) {
    Context ctx(*alice_);
    const auto y = module->Forward(ctx, Tensor::Ones({2, 3})).Await();
    ASSERT_THAT(y, IsOk());
    const Variable loss = autograd::Sum(*y);
    ASSERT_THAT(ctx.Backward(loss), IsOk());
    ASSERT_THAT(sgd.Step(ctx), IsOk());
    (step == 0 ? first : last) = loss.tensor().Item();
  }
  EXPECT_LT(last, first);
}

TEST(Alone, IsATrainerThatIsItsOwnWorker) {
  const auto agent = Alone<DenseStage>();
  ASSERT_THAT(agent, IsOk());
  const std::string self = (*agent)->self().name;
  const auto module =
      Module<DenseStage>::Create(**agent, self, 3, 2, false, 5).Await();
  ASSERT_THAT(module, IsOk());
  EXPECT_EQ(*module->NumParameters().Await(), 8);
}

TEST_F(JoinTest, ServesOtherClassesFunctionsAndCollectives) {
  ASSERT_NO_FATAL_FAILURE(JoinBoth());
  const auto tally = rpc::Create<Tally>(*alice_, "bob").Await();
  ASSERT_THAT(tally, IsOk());
  EXPECT_EQ(*tally->Async<&Tally::Add>(3).Await(), 3);
  EXPECT_EQ(*alice_->Async<&Twice>("bob", 4).Await(), 8);
  EXPECT_THAT(rpc::Collectives::Of(*alice_), IsOk());
}

TEST_F(JoinTest, TakesAHandleWhereAModuleOrItsRRefIsMeant) {
  ASSERT_NO_FATAL_FAILURE(JoinBoth());
  const auto module =
      Module<DenseStage>::Create(*alice_, "bob", 3, 2, false, 5).Await();
  ASSERT_THAT(module, IsOk());
  EXPECT_EQ(*alice_->Async<&CountParameters>("bob", *module).Await(), 8);
  Context ctx(*alice_);
  const auto y = module->Forward(ctx, Tensor::Ones({2, 3})).Await();
  ASSERT_THAT(y, IsOk());
  const auto gradients = ctx.Grad(
      {autograd::Sum(*y)}, {*module, ParameterSource(*module).Only({"bias"})});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(gradients->size(), 3u);
}

TEST_F(JoinTest, RunsTheCallersOnStartWithDistributedAutogradAttached) {
  rpc::ClusterOptions options = By("alice", 1);
  size_t contexts = 1;
  options.agent.on_start = [&](rpc::Agent& agent) {
    contexts = OpenContexts(agent).size();
  };
  ASSERT_THAT(JoinAs(std::move(options)), IsOk());
  EXPECT_EQ(contexts, 0u);
}

TEST_F(JoinTest, SaysThatItRegistersTheStockItself) {
  rpc::Registry registry;
  RegisterOptimizer<optim::Sgd>(registry);
  EXPECT_THAT(Join(By("alice", 1), std::move(registry)),
              Fails(StatusCode::kAlreadyExists,
                    "dist::Join registers all of dist::RegisterStock"));
}

TEST_F(JoinTest, AForgottenModuleIsNamedWithTheLineToAdd) {
  ASSERT_NO_FATAL_FAILURE(JoinBoth());
  const auto made = Module<FragileStage>::Create(*alice_, "bob",
                                                 FragileStage::Fault::kNone, 0)
                        .Await();
  EXPECT_THAT(made,
              Fails(StatusCode::kUnimplemented,
                    "bob, FragileStage: not registered on this worker: join by "
                    "dist::Join<FragileStage>(options), or call "
                    "dist::RegisterModule<FragileStage>(registry) before "
                    "rpc::JoinCluster, in every process"));
}

TEST_F(JoinTest, RegistersALossWithWhatAPipelineNeedsOfIt) {
  ASSERT_NO_FATAL_FAILURE(JoinBoth());
  const auto loss = Module<SquareLoss>::Create(*alice_, "bob").Await();
  ASSERT_THAT(loss, IsOk());
  const auto found = PipelineLoss(*loss).At(*alice_, loss->owner());
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(found->has_value());
}

// Without dist::Join.
TEST(WithoutJoin, AForgottenOptimizerOrAttachIsNamedWithTheLineToAdd) {
  testing::ClusterOptions options;
  options.fill = RegisterModule<DenseStage>;
  testing::LocalCluster cluster(options);
  rpc::Agent& alice = cluster["alice"];
  const auto module =
      Module<DenseStage>::Create(alice, "bob", 3, 2, false, 5).Await();
  ASSERT_THAT(module, IsOk());
  const Optimizer<optim::Sgd> sgd(alice, {.lr = 0.1}, {*module});
  EXPECT_THAT(sgd.Ready().Await(),
              Fails(StatusCode::kUnimplemented,
                    "bob, Sgd: not registered on this worker: join by "
                    "dist::Join(options), or call "
                    "dist::RegisterOptimizer<Sgd>(registry)"));
  try {
    const Context ctx(alice);
    FAIL() << "the context was made";
  } catch (const Error& error) {
    EXPECT_THAT(error.status(),
                Fails(StatusCode::kInvalidArgument, "call dist::Attach"));
  }
}

}  // namespace
}  // namespace baton::dist
