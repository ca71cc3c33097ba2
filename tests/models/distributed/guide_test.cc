// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/distributed/remote_hooks.h"
#include "autograd/functions/arithmetic.h"
#include "core/checkpoint.h"
#include "core/checkpoint_writer.h"
#include "core/cuda/memory.h"
#include "core/foreign_memory.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/stream.h"
#include "models/distributed/module.h"
#include "models/nn/loss.h"
#include "models/nn/module.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "optim/grad_scaler.h"
#include "optim/schedule.h"
#include "tests/support/error_of.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/test_files.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

// The code that the guides in docs/ show (cmake/check_snippets.py).
namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::Each;
using testing::IsOk;
using Front = DenseStage;

// [clip]
Tensor Clip(const Tensor& gradient) { return ops::Clamp(gradient, -1, 1); }
// [end]

void AddGuideTypes(rpc::Registry& registry) {
  RegisterModule<DenseStage>(registry);
  RegisterOptimizer<optim::Adam>(registry);
  // [register_hook]
  dist::RegisterGradientHook<&Clip>(registry);
  // [end]
}

class GuideTest : public ::testing::Test {
 protected:
  GuideTest() : cluster_(3, AddGuideTypes) {
    Generator generator(1);
    // Where the trainer, alice, computes: outputs of modules come there.
    images_ = test::Put(RandNormal({6, 4}, generator));
    labels_ = test::Put(RandInt(0, 4, {6}, generator));
  }
  rpc::Agent& agent() { return cluster_.alice(); }
  Module<DenseStage> Make(const std::string& worker) {
    return *Module<DenseStage>::Create(agent(), worker, 4, 4, true, 7).Await();
  }

  testing::TrainingCluster cluster_;
  Tensor images_, labels_;
};

absl::Status TakeAStep(rpc::Agent& agent, const Module<DenseStage>& front,
                       const Module<DenseStage>& back,
                       Optimizer<optim::Adam>& optimizer, const Tensor& images,
                       const Tensor& labels) {
  // [step]
  dist::Context ctx(agent);
  const Future<Variable> hidden = front.Forward(ctx, images);
  ASSIGN_OR_RETURN(const Variable logits, back.Forward(ctx, hidden).Await());
  RETURN_IF_ERROR(ctx.Backward(nn::CrossEntropy(logits, labels)));
  RETURN_IF_ERROR(optimizer.Step(ctx));
  // [end]
  return absl::OkStatus();
}

TEST_F(GuideTest, AStepWithAContext) {
  const auto front = Make("bob"), back = Make("carol");
  Optimizer<optim::Adam> adam(agent(), {.lr = 0.1}, {front, back});
  EXPECT_THAT(TakeAStep(agent(), front, back, adam, images_, labels_), IsOk());
}

absl::Status AskForGradients(rpc::Agent& agent, const Module<DenseStage>& front,
                             const Tensor& images, const Tensor& labels) {
  const Variable x(images, true);
  dist::Context ctx(agent);
  ASSIGN_OR_RETURN(const Variable y, front.Forward(ctx, x).Await());
  const Variable loss = nn::CrossEntropy(y, labels);
  // [grad]
  ASSIGN_OR_RETURN(std::vector<Tensor> gradients, ctx.Grad({loss}, {x, front}));
  // [end]
  EXPECT_EQ(gradients.size(), 3u);  // of x, weight and bias
  return absl::OkStatus();
}

absl::Status MoveGradients(rpc::Agent& agent, const Module<DenseStage>& front,
                           const Tensor& images, const Tensor& labels) {
  const Variable x(images, true);
  dist::Context ctx(agent);
  ASSIGN_OR_RETURN(const Variable y, front.Forward(ctx, x).Await());
  RETURN_IF_ERROR(ctx.Backward(nn::CrossEntropy(y, labels)));
  // [move]
  RETURN_IF_ERROR(ctx.MoveToGrad().Await());
  // [end]
  EXPECT_TRUE(x.grad().defined());
  return absl::OkStatus();
}

TEST_F(GuideTest, GradientsOfChosenValues) {
  EXPECT_THAT(AskForGradients(agent(), Make("bob"), images_, labels_), IsOk());
  EXPECT_THAT(MoveGradients(agent(), Make("bob"), images_, labels_), IsOk());
}

absl::Status HookThem(rpc::Agent& agent, const Module<Front>& front) {
  // [remote_hook]
  const auto weights = dist::ParameterSource(front).Only({"weight"});
  ASSIGN_OR_RETURN(auto hooks,
                   dist::AddGradientHook<&Clip>(agent, weights).Await());
  RETURN_IF_ERROR(hooks.Async<&dist::RemoteHooks::Remove>().Await());
  // [end]
  return absl::OkStatus();
}

TEST_F(GuideTest, Hooks) {
  EXPECT_THAT(HookThem(agent(), Make("bob")), IsOk());
  const Variable x(images_, true);
  Variable hidden = autograd::Mul(x, x);
  // [hook]
  auto hook = hidden.AddHook(
      [](const Tensor& g) { return ops::MulScalar(g, 0.5); }, "scale");
  hook.Remove();
  // [end]
}

absl::Status SaveHere(const std::string& folder, nn::Module& model,
                      optim::Optimizer& adam, optim::GradScaler& scaler) {
  const int64_t step = 1;
  CheckpointWriter writer({.folder = folder});
  // [writer]
  NamedTensors state = AsPart("model", model.StateDict());
  state.merge(AsPart("generators", model.GeneratorState()));
  state.merge(AsPart("optimizer", adam.SharedState()));
  state.merge(AsPart("scaler", scaler.ExportState()));
  RETURN_IF_ERROR(writer.Save(step, state));
  // [end]
  return writer.Wait();
}

TEST_F(GuideTest, ACheckpointOfOneProcess) {
  const testing::TempFolder folder;
  DenseStage model(4, 4, false, 3);
  optim::Adam adam(model.NamedParameters(), {.lr = 1e-3});
  optim::GradScaler scaler({Device::Cpu()}, {});
  EXPECT_THAT(SaveHere(folder / "run", model, adam, scaler), IsOk());
}

TEST_F(GuideTest, MemoryOfAnotherLibrary) {
  std::vector<float> pixels(6, 2);
  bool freed = false;
  {
    // [memory]
    Tensor x = FromMemory(pixels.data(), {2, 3}, DType::kF32,
                          [&freed] { freed = true; });  // no tensor is left
    DLManagedTensor* exported = ToDlpack(x);
    // [end]
    x = FromDlpack(exported);
    EXPECT_THAT(x.ToVector<float>(), Each(2));
  }
  EXPECT_TRUE(freed);
}

TEST_F(GuideTest, AutocastAndSchedules) {
  DenseStage model(4, 4, false, 3);
  model.To(test::TestDevice());
  // [optimizer]
  optim::AdamW adam(model.NamedParameters(), {.lr = 1e-3});
  adam.set_clip({.norm = 1});
  adam.set_schedule(optim::WarmUp(100, optim::CosineLr({.total = 900})));
  // [end]
  const Tensor &images = images_, &labels = labels_;
  Variable loss;
  // [autocast]
  {
    const AutocastScope autocast(DType::kBF16);
    loss = nn::CrossEntropy(model(images), labels);
  }
  loss.Backward();  // gradients of parameters are f32
  // [end]
  adam.Step();
  EXPECT_EQ(model.Parameters()[0].grad().dtype(), DType::kF32);
}

class Bf16Layers final : public nn::Module {
 public:
  // [own_autocast]
  Variable Forward(const Variable& x) override {
    const AutocastScope autocast(DType::kBF16);
    return layers_(x);
  }
  // [end]

 private:
  DenseStage& layers_ = MakeModule<DenseStage>("layers", 4, 4, false, 3U);
};

TEST_F(GuideTest, AModuleThatOpensItsOwnAutocast) {
  Bf16Layers model;
  model.To(test::TestDevice());
  EXPECT_EQ(model(images_).dtype(), DType::kBF16);
  EXPECT_EQ(model.Parameters()[0].dtype(), DType::kF32);
}

void ComputeOnTheirStream(nn::Module& model, const Tensor& x, Variable& y,
                          void* cuda_stream) {
  // [adopt]
  const Stream theirs =
      Stream::Adopt(Device::Cuda(0), cuda_stream);  // a cudaStream_t
  {
    const StreamScope scope(theirs);
    y = model(x);  // given to cuda_stream
  }
  theirs.Release();
  // [end]
}

TEST_F(GuideTest, StreamOfAnotherLibrary) {
  DenseStage model(4, 4, true, 3);
  model.To(test::TestDevice());
  Variable y;
  const auto compute = [&] {
    ComputeOnTheirStream(model, images_, y, nullptr);
  };
  if (cuda::DeviceCount() == 0) {
    EXPECT_NE(test::ErrorOf(compute), "no error");
    return;
  }
  compute();
  EXPECT_TRUE(ops::AllClose(y.tensor(), model(images_).tensor(), 1e-6, 1e-6));
}

}  // namespace
}  // namespace baton::dist
