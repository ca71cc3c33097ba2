// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/distributed/context.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "models/distributed/module.h"
#include "models/distributed/server/embedding.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/test_files.h"
#include "tests/support/toy_stages.h"

// The code that docs/parameter_server.md shows (cmake/check_snippets.py).
namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::Each;
using ::testing::FloatNear;
using testing::IsOk;
using testing::RunBeside;
using testing::ServerTest;
using Servers = std::unique_ptr<dist::ParameterServers>;

constexpr int64_t kGuideWidth = 4;

void AddGuideTypes(rpc::Registry& registry) {
  RegisterModule<DenseStage>(registry);
  RegisterOptimizer<optim::Adam>(registry);
}

class ServerGuide : public ServerTest {
 protected:
  ServerGuide() : ServerTest(AddGuideTypes) {}
  rpc::Agent& agent() { return cluster_.alice(); }
};

absl::StatusOr<Servers> MakeServers(rpc::Agent& agent, const Tensor& weight,
                                    const Tensor& bias) {
  // [make]
  dist::ServerOptions options;
  options.rule = ops::SgdRule{.lr = 0.1};  // or AdamRule, AdagradRule, ...
  options.mode = dist::Consistency::kBulkSynchronous;
  options.trainers = 2;
  options.backups = true;
  ASSIGN_OR_RETURN(
      auto servers,
      dist::ParameterServers::Make(agent, {"bob", "carol"}, options,
                                   {{"fc.weight", weight}, {"fc.bias", bias}}));
  // [end]
  return servers;
}

absl::Status TakeAStep(rpc::Agent& agent,
                       const RRef<dist::ServerDirectory>& directory,
                       int64_t rank, const Tensor& weight, const Tensor& bias) {
  const Tensor d_weight = Tensor::Full(weight.shape(), 1.0);
  const Tensor d_bias =
      Tensor::Full(bias.shape(), static_cast<double>(4 * rank));
  // [join]
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(agent, directory, rank));
  ASSIGN_OR_RETURN(auto pulled, client->PushPull({d_weight, d_bias}).Await());
  pulled.CopyTo({weight, bias});
  // [end]
  return absl::OkStatus();
}

TEST_F(ServerGuide, ARoundOfTwoTrainers) {
  auto servers = MakeServers(agent(), Tensor::Ones({3, 4}), Tensor::Ones({4}));
  ASSERT_THAT(servers, IsOk());
  testing::DirectoryToGive() = (*servers)->directory();
  std::vector<std::function<void()>> trainers;
  for (const std::string name : {"alice", "dave"}) {
    trainers.emplace_back([this, name] {
      rpc::Agent& here = cluster_.at(name);
      const auto directory =
          here.Async<&testing::GiveDirectory>("alice").Await();
      ASSERT_THAT(directory, IsOk());
      const Tensor weight = Tensor::Zeros({3, 4}), bias = Tensor::Zeros({4});
      ASSERT_THAT(
          TakeAStep(here, *directory, name == "dave" ? 1 : 0, weight, bias),
          IsOk());
      EXPECT_THAT(weight.ToVector<float>(), Each(FloatNear(0.9F, 1e-6F)));
      EXPECT_THAT(bias.ToVector<float>(), Each(FloatNear(0.8F, 1e-6F)));
    });
  }
  RunBeside(trainers);
}

Variable Loss(const Variable& logits) {
  return autograd::Mean(autograd::Mul(logits, logits));
}

absl::Status TrainRows(rpc::Agent& agent,
                       const std::shared_ptr<dist::ServerClient>& client,
                       const Module<DenseStage>& rest,
                       dist::Optimizer<optim::Adam>& adam,
                       const Tensor& tokens) {
  // [embedding]
  ASSIGN_OR_RETURN(auto words, dist::Embedding::Make(client, "words"));
  dist::Context ctx(agent);
  ASSIGN_OR_RETURN(const Variable logits,
                   rest.Forward(ctx, words->Forward(ctx, tokens)).Await());
  RETURN_IF_ERROR(ctx.Backward(Loss(logits)));
  RETURN_IF_ERROR(adam.Step(ctx));
  // [end]
  return absl::OkStatus();
}

TEST_F(ServerGuide, RowsOfAnEmbedding) {
  ServerOptions options;
  options.tables = {{.name = "words",
                     .width = kGuideWidth,
                     .start = RowStart::kNormal,
                     .scale = 1,
                     .rule = ops::SgdRule{.lr = 0.1}}};
  Make(options, {{"x", Tensor::Zeros({4})}});
  const std::shared_ptr<ServerClient> client = Join(0);
  const auto rest =
      Module<DenseStage>::Create(agent(), "dave", kGuideWidth, 3, false, 5)
          .Await();
  ASSERT_THAT(rest, IsOk());
  dist::Optimizer<optim::Adam> adam(agent(), {.lr = 0.1}, {*rest});
  const Tensor tokens = Tensor::From<int64_t>({3, 1, 3});
  const Tensor before = *client->PullRows(0, tokens).Await();
  ASSERT_THAT(TrainRows(agent(), client, *rest, adam, tokens), IsOk());
  EXPECT_EQ(ReportOf(0).version, 1);
  const Tensor after = *client->PullRows(0, tokens).Await();
  EXPECT_NE(after.ToVector<float>(), before.ToVector<float>());
}

absl::Status Save(const Servers& servers, int64_t step,
                  const NamedTensors& trainer, const std::string& folder) {
  // [save]
  RETURN_IF_ERROR(servers->Save({.folder = folder}, step, trainer));
  // [end]
  return absl::OkStatus();
}

absl::StatusOr<dist::ParameterServers::Resumed> Resume(
    rpc::Agent& agent, const dist::ServerOptions& options,
    const dist::ParameterServers::Values& values, const std::string& folder) {
  // [resume]
  ASSIGN_OR_RETURN(auto resumed, dist::ParameterServers::Resume(
                                     agent, {"bob", "carol", "dave"}, options,
                                     values, folder, IfBroken::kFail));
  // [end]
  return resumed;
}

TEST_F(ServerGuide, ACheckpointIsResumedByMoreServers) {
  const testing::TempFolder folder;
  ServerOptions options;
  options.rule = ops::SgdRule{.lr = 0.5};
  Make(options, {{"x", Tensor::Ones({4})}, {"y", Tensor::Ones({6})}});
  ASSERT_THAT(Join(0)->Push(Filled(1)).Await(), IsOk());
  const NamedTensors trainer = {{"batch", Tensor::From<int64_t>({9})}};
  ASSERT_THAT(Save(servers_, 7, trainer, folder / "run"), IsOk());
  const ParameterServers::Values like = {{"x", Tensor::Zeros({4})},
                                         {"y", Tensor::Zeros({6})}};
  auto resumed = Resume(agent(), options, like, folder / "run");
  ASSERT_THAT(resumed, IsOk());
  EXPECT_EQ(resumed->step, 7);
  EXPECT_EQ(resumed->trainer.at("batch").Item(), 9);
  servers_ = std::move(resumed->servers);
  testing::DirectoryToGive() = servers_->directory();
  for (const Tensor& value : Read(*Join(std::nullopt)))
    EXPECT_THAT(value.ToVector<float>(), Each(0.5F));
}

}  // namespace
}  // namespace baton::dist
