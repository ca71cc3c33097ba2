// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/lenet.h"
#include "models/nn/graphed_step.h"
#include "optim/grad_scaler.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

// Replicas in half precision, and whose loss has a scale, as f16 needs it; of
// GPUs with BATON_TEST_DEVICE=cuda.
namespace baton::dist {
namespace {

using testing::Groups;
using testing::IsOk;
using testing::OnEach;

class Weight final : public nn::Module {
 public:
  explicit Weight(int64_t count = 4)
      : weight_(RegisterParameter("weight", Tensor::Ones({count}))) {}
  Variable LossOf(double slope) const {
    return autograd::MulScalar(autograd::Sum(weight_), slope);
  }
  Variable LossOf(const Tensor& slopes) const {
    return autograd::Sum(autograd::Mul(weight_, Variable(slopes)));
  }
  std::vector<float> values() const {
    return weight_.tensor().ToVector<float>();
  }
  float value() const { return values().back(); }

 private:
  Variable& weight_;
};

// Groups of which each member has a device as the tests have it, that of GPUs
// its own.
Groups GroupsHere(int members) {
  return Groups(testing::MembersHere(members),
                {.name = "Shared", .gpus = test::TestDevice().is_cuda()});
}

TEST(DataParallelLossScale, SkipsAtAllAStepThatOverflowsAtOne) {
  const Groups groups = GroupsHere(3);
  const size_t last = groups.size() - 1;
  OnEach(groups.size(), [&](size_t rank) {
    const Device device = groups.device(rank);
    Weight model;
    model.To(device);
    const auto parallel = DataParallel::Make(model, groups[rank]);
    ASSERT_THAT(parallel, IsOk());
    optim::Sgd sgd(model.Parameters(), {.lr = 1});
    optim::GradScaler scaler({device}, {.scale = 8, .interval = 2});
    const auto step = [&](double slope) {
      sgd.ZeroGrad();
      ASSERT_THAT(
          (*parallel)->Backward({model.LossOf(slope)}, {scaler.scale(device)}),
          IsOk());
      scaler.Step(sgd);
    };
    const auto scale = [&] { return scaler.scale(device).Item(); };
    // The mean is 1.
    step(rank == last ? static_cast<double>(groups.size()) : 0);
    EXPECT_EQ(model.value(), 0);
    EXPECT_EQ(scale(), 8);
    step(rank == last ? 1e38 : 0);  // 8 times that is infinite
    EXPECT_EQ(model.value(), 0);
    EXPECT_EQ(scale(), 4);
    step(1);
    step(1);
    EXPECT_EQ(model.value(), -2);
    EXPECT_EQ(scale(), 8);
  });
}

// One member's loss makes one element infinite, and that is in the second
// shard. The third one is padding alone.
TEST(DataParallelLossScale, SkipsAtAllAStepThatOverflowsInOneShard) {
  const Groups groups = GroupsHere(3);
  OnEach(groups.size(), [&](size_t rank) {
    constexpr int64_t kCount = 20;  // a shard has 16
    const Device device = groups.device(rank);
    Weight model(kCount);
    model.To(device);
    const auto parallel =
        DataParallel::Make(model, groups[rank], {.shard_optimizer = true});
    ASSERT_THAT(parallel, IsOk());
    optim::Sgd sgd((*parallel)->shards(), {.lr = 1});
    optim::GradScaler scaler({device}, {.scale = 8, .interval = 2});
    const auto step = [&](float slope_of_last) {
      const Tensor slopes = Tensor::Ones({kCount});
      slopes.data<float>()[kCount - 1] = slope_of_last;
      sgd.ZeroGrad();
      ASSERT_THAT((*parallel)->Backward({model.LossOf(slopes.To(device))},
                                        {scaler.scale(device)}),
                  IsOk());
      scaler.Step(sgd);
      ASSERT_THAT((*parallel)->GatherParameters(), IsOk());
    };
    const auto expect = [&](float value, double scale) {
      for (const float each : model.values()) EXPECT_EQ(each, value);
      EXPECT_EQ(scaler.scale(device).Item(), scale);
    };
    step(1);
    expect(0, 8);
    step(rank == 0 ? 1e38F : 0);
    expect(0, 4);
    step(1);
    step(1);
    expect(-2, 8);
  });
}

// Eight steps. In f16 they have a scale that overflows in the first one and
// then, three steps after it, in the fifth, which GPUs replay.
constexpr int kHalfSteps = 8;
constexpr int64_t kHalfImages = 6;  // of a member
constexpr double kTooLarge = 1 << 28, kFits = 1 << 14;

Tensor HalfImagesOf(size_t rank) {
  Generator generator(rank);
  return RandNormal({kHalfImages, 1, 28, 28}, generator);
}
Tensor HalfLabelsOf(size_t rank) {
  Generator generator(100 + rank);
  return RandInt(0, 10, {kHalfImages}, generator);
}

class LeNetInHalf {
 public:
  LeNetInHalf(const Groups& groups, size_t rank, DType dtype, bool shard)
      : device_(groups.device(rank)),
        dtype_(dtype),
        generator_(1),
        model_(generator_) {
    if (dtype == DType::kF16) {
      scaler_.emplace(std::vector<Device>{device_},
                      optim::GradScalerOptions{.scale = kTooLarge,
                                               .growth = kTooLarge / kFits,
                                               .backoff = kFits / kTooLarge,
                                               .interval = 3});
    }
    model_.LowerPrecision(dtype);
    model_.To(device_);
    auto made =
        DataParallel::Make(model_, groups[rank],
                           {.buckets = {4096, 4096}, .shard_optimizer = shard});
    EXPECT_THAT(made, IsOk());
    parallel_ = *std::move(made);
    sgd_ = std::make_unique<optim::Sgd>(
        shard ? parallel_->shards() : model_.Parameters(),
        optim::SgdOptions{.lr = 0.05, .momentum = 0.9});
    step_ = std::make_unique<nn::GraphedStep>(
        [this](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{Step(in[0], in[1])};
        },
        std::vector<Device>{device_}, model_.Parameters(),
        nn::RecordingOptions{.warm_up = 2});
  }
  // Gives the loss before each step.
  std::vector<double> Train(const Tensor& images, const Tensor& labels) {
    std::vector<double> losses;
    for (int i = 0; i < kHalfSteps; ++i) {
      losses.push_back(
          step_->Run({images.To(device_).To(dtype_), labels.To(device_)})[0]
              .Item());
      if (scaler_) scales_.push_back(scaler_->scale(device_).Item());
    }
    EXPECT_EQ(step_->replays(), device_.is_cuda() ? kHalfSteps - 2 : 0);
    EXPECT_THAT(parallel_->GatherParameters(), IsOk());
    EXPECT_THAT(parallel_->group().Barrier().Await(), IsOk());
    return losses;
  }
  std::vector<Tensor> Parameters() const {
    std::vector<Tensor> parameters;
    for (const Variable& each : model_.Parameters())
      parameters.push_back(each.tensor().To(Device::Cpu()));
    return parameters;
  }
  // After each step, in f16.
  const std::vector<double>& scales() const { return scales_; }

 private:
  Tensor Step(const Tensor& images, const Tensor& labels) {
    if (!parallel_->shards().empty()) Check(parallel_->GatherParameters());
    sgd_->ZeroGrad();
    const Variable loss = autograd::CrossEntropy(
        autograd::Cast(model_(Variable(images)), DType::kF32), labels);
    const Tensor scale = scaler_ ? scaler_->scale(device_) : Tensor();
    Check(parallel_->Backward({loss}, {scale}));
    scaler_ ? scaler_->Step(*sgd_) : sgd_->Step();
    return loss.tensor();
  }
  static void Check(const absl::Status& status) {
    if (!status.ok()) throw Error(status);
  }

  const Device device_;
  const DType dtype_;
  Generator generator_;
  models::LeNet model_;
  std::unique_ptr<DataParallel> parallel_;
  std::unique_ptr<optim::Sgd> sgd_;
  std::optional<optim::GradScaler> scaler_;  // of f16
  std::unique_ptr<nn::GraphedStep> step_;
  std::vector<double> scales_;
};

// In a dtype, with the optimizer's state whole or divided.
class HalfTraining : public ::testing::TestWithParam<std::tuple<DType, bool>> {
 protected:
  DType dtype() const { return std::get<0>(GetParam()); }
  bool shard() const { return std::get<1>(GetParam()); }
  // The number of steps that have been taken before each.
  std::vector<size_t> Taken() const {
    if (dtype() == DType::kF16) return {0, 0, 1, 2, 3, 3, 4, 5};
    return {0, 1, 2, 3, 4, 5, 6, 7};
  }
  std::vector<double> Scales() const {
    if (dtype() != DType::kF16) return {};
    return {kFits, kFits, kFits, kTooLarge, kFits, kFits, kFits, kTooLarge};
  }
  // One process in f32, on the CPU, on the images of all.
  void TrainWhole(size_t members) {
    std::vector<Tensor> images, labels;
    for (size_t rank = 0; rank < members; ++rank) {
      images.push_back(HalfImagesOf(rank));
      labels.push_back(HalfLabelsOf(rank));
    }
    Generator generator(1);
    models::LeNet whole(generator);
    optim::Sgd sgd(whole.Parameters(), {.lr = 0.05, .momentum = 0.9});
    for (size_t i = 0; i <= Taken().back(); ++i) {
      sgd.ZeroGrad();
      const Variable loss = autograd::CrossEntropy(
          whole(Variable(ops::Cat(images, 0))), ops::Cat(labels, 0));
      loss.Backward();
      sgd.Step();
      losses_.push_back(loss.tensor().Item());
    }
    parameters_ = TensorsOf(whole.Parameters());
  }
  std::vector<double> losses_;
  std::vector<Tensor> parameters_;
};

TEST_P(HalfTraining, TakesTheSameStepsAtAllAndTrainsAsInF32) {
  // The weights of bf16 have three bits fewer.
  const double more = dtype() == DType::kBF16 ? 4 : 1;
  const Groups groups = GroupsHere(2);
  std::vector<std::vector<double>> losses(groups.size());
  std::vector<std::vector<Tensor>> parameters(groups.size());
  OnEach(groups.size(), [&](size_t rank) {
    LeNetInHalf half(groups, rank, dtype(), shard());
    losses[rank] = half.Train(HalfImagesOf(rank), HalfLabelsOf(rank));
    parameters[rank] = half.Parameters();
    EXPECT_EQ(half.scales(), Scales());
  });
  TrainWhole(groups.size());
  EXPECT_LT(losses_.back(), losses_.front());
  const std::vector<size_t> taken = Taken();
  for (size_t step = 0; step < taken.size(); ++step) {
    double mean = 0;
    for (const std::vector<double>& each : losses)
      mean += each[step] / static_cast<double>(groups.size());
    EXPECT_NEAR(mean, losses_[taken[step]], 5e-3) << step;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (const auto& each : parameters)
      EXPECT_TRUE(ops::BitEqual(each[i], parameters[0][i])) << i;
    EXPECT_TRUE(ops::AllClose(parameters[0][i].To(DType::kF32), parameters_[i],
                              more * 1e-2, more * 2e-3))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizer, HalfTraining,
                         ::testing::Combine(::testing::Values(DType::kF16,
                                                              DType::kBF16),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(
                               Name(std::get<0>(info.param)),
                               std::get<1>(info.param) ? "Divided" : "Whole");
                         });

}  // namespace
}  // namespace baton::dist
