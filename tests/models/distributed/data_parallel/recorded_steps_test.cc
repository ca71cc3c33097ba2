// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "autograd/functions/activation.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/sync_batch_norm.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/graphed_step.h"
#include "models/nn/linear.h"
#include "optim/sgd.h"
#include "tests/rpc/collectives/groups.h"

// Steps that are recorded, as GPUs have them (BATON_TEST_DEVICE=cuda); the CPU
// takes them as they are.
namespace baton::dist {
namespace {

using testing::Groups;
using testing::IsOk;

constexpr int kSteps = 8;
constexpr int64_t kRows = 8;

// With running statistics, and weights that do not fill whole lines.
class SmallNet final : public nn::Module {
 public:
  explicit SmallNet(uint64_t seed)
      : generator_(seed),
        conv_(MakeModule<nn::Conv2d>(
            "conv", 3, 5, nn::Conv2dOptions{.kernel = {3, 3}, .bias = false},
            generator_)),
        norm_(MakeModule<nn::BatchNorm2d>("norm", 5)),
        last_(MakeModule<nn::Linear>("last", 5 * 6 * 6, 7, generator_)) {}
  Variable Forward(const Variable& x) override {
    return last_(autograd::Flatten(autograd::Relu(norm_(conv_(x))), 1));
  }

 private:
  Generator generator_;
  nn::Conv2d& conv_;
  nn::BatchNorm2d& norm_;
  nn::Linear& last_;
};

// One member's training: a step on its own images, and what it is left with.
class Replica {
 public:
  // Whose images are normalised together: of each member, of all, or of all
  // where one member has them.
  enum class Batches { kOwn, kOfAll, kAll };

  Replica(Groups& groups, size_t rank, const DataParallelOptions& options,
          Batches batches)
      : device_(groups.device(rank)), rank_(rank), model_(1 + rank) {
    model_.To(device_);
    if (batches == Batches::kOfAll) SynchroniseBatchNorms(model_, groups[rank]);
    if (batches == Batches::kAll)
      ranks_ = static_cast<size_t>(testing::MembersHere(2));
    auto made = DataParallel::Make(model_, groups[rank], options);
    EXPECT_THAT(made, IsOk());
    parallel_ = *std::move(made);
    sgd_ = std::make_unique<optim::Sgd>(
        options.shard_optimizer ? parallel_->shards() : model_.Parameters(),
        optim::SgdOptions{.lr = 0.05, .momentum = 0.9});
    step_ = std::make_unique<nn::GraphedStep>(
        [this](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{Step(in[0], in[1])};
        },
        std::vector<Device>{device_}, model_.Parameters(),
        nn::RecordingOptions{.warm_up = 2});
  }

  void Train() {
    std::vector<Tensor> all_images, all_labels;
    for (size_t i = 0; i < ranks_; ++i) {
      Generator generator(rank_ + i);
      all_images.push_back(RandNormal({kRows, 3, 8, 8}, generator));
      all_labels.push_back(RandInt(0, 7, {kRows}, generator));
    }
    const Tensor images = ops::Cat(all_images, 0);
    const Tensor labels = ops::Cat(all_labels, 0);
    for (int i = 0; i < kSteps; ++i) {
      losses_.push_back(
          step_->Run({images.To(device_), labels.To(device_)})[0].Item());
    }
    EXPECT_THAT(parallel_->GatherParameters(), IsOk());
    EXPECT_EQ(step_->replays(), device_.is_cuda() ? kSteps - 2 : 0);
    EXPECT_EQ(parallel_->figures().steps, kSteps);
    EXPECT_EQ(parallel_->figures().bytes % kSteps, 0);
    EXPECT_GE(parallel_->figures().waited_s, 0);
    EXPECT_THAT(parallel_->group().Barrier().Await(), IsOk());
  }
  nn::StateMap State() const {
    nn::StateMap state;
    for (const auto& [name, value] : model_.StateDict())
      state[name] = value.To(Device::Cpu());
    return state;
  }
  const std::vector<double>& losses() const { return losses_; }

 private:
  Tensor Step(const Tensor& images, const Tensor& labels) {
    if (!parallel_->shards().empty()) Check(parallel_->GatherParameters());
    sgd_->ZeroGrad();
    const Variable loss = autograd::CrossEntropy(model_(images), labels);
    Check(parallel_->Backward(loss));
    sgd_->Step();
    return loss.tensor();
  }
  static void Check(const absl::Status& status) {
    if (!status.ok()) throw Error(status);
  }

  const Device device_;
  const size_t rank_;
  size_t ranks_ = 1;  // whose images it has
  SmallNet model_;
  std::unique_ptr<DataParallel> parallel_;
  std::unique_ptr<optim::Sgd> sgd_;
  std::unique_ptr<nn::GraphedStep> step_;
  std::vector<double> losses_;
};

class RecordedSteps : public ::testing::Test {
 protected:
  static int members() { return testing::MembersHere(2); }

  using Batches = Replica::Batches;

  // What each member has in the end.
  static std::vector<nn::StateMap> Train(Device device,
                                         const DataParallelOptions& options,
                                         Batches batches = Batches::kOwn) {
    Groups groups(batches == Batches::kAll ? 1 : members(),
                  {.name = "Here", .gpus = device.is_cuda()});
    std::vector<nn::StateMap> states(groups.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < groups.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Replica replica(groups, rank, options, batches);
        replica.Train();
        EXPECT_LT(replica.losses().back(), replica.losses().front());
        states[rank] = replica.State();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return states;
  }
  static void ExpectClose(const nn::StateMap& a, const nn::StateMap& b) {
    for (const auto& [name, value] : a)
      EXPECT_TRUE(ops::AllClose(value, b.at(name), 1e-2, 1e-3)) << name;
  }
  static void ExpectEqual(const std::vector<nn::StateMap>& states) {
    for (const nn::StateMap& state : states)
      for (const auto& [name, value] : state)
        EXPECT_TRUE(ops::BitEqual(value, states[0].at(name))) << name;
  }
};

TEST_F(RecordedSteps, KeepReplicasEqualAndAreThoseOfTheCpu) {
  // Some hundred bytes each, so that there are several.
  const DataParallelOptions options{.buckets = {512, 512}};
  const auto here = Train(test::TestDevice(), options);
  ExpectEqual(here);
  ExpectClose(here[0], Train(Device::Cpu(), options)[0]);
}

TEST_F(RecordedSteps, OfShardsAreThoseOfWholeParameters) {
  const auto whole = Train(test::TestDevice(), {.buckets = {512, 512}});
  const auto shards = Train(test::TestDevice(),
                            {.buckets = {512, 512}, .shard_optimizer = true});
  ExpectEqual(shards);
  ExpectClose(shards[0], whole[0]);
}

TEST_F(RecordedSteps, NormaliseTheBatchesOfAllAsOne) {
  const DataParallelOptions options{.buckets = {512, 512}};
  const auto here = Train(test::TestDevice(), options, Batches::kOfAll);
  ExpectEqual(here);
  ExpectClose(here[0], Train(Device::Cpu(), options, Batches::kAll)[0]);
}

TEST_F(RecordedSteps, TravelAsHalf) {
  const auto half = Train(test::TestDevice(),
                          {.buckets = {512, 512}, .travel_as = DType::kBF16});
  ExpectEqual(half);
}

TEST_F(RecordedSteps, TravelAsThinMatrices) {
  const DataParallelOptions options{.buckets = {512, 512}, .power_sgd_rank = 1};
  const auto here = Train(test::TestDevice(), options);
  ExpectEqual(here);
  ExpectClose(here[0], Train(Device::Cpu(), options)[0]);
}

TEST_F(RecordedSteps, ReduceByAHookOfOnesOwn) {
  const GradientHook halves = [](rpc::ProcessGroup& group,
                                 const GradientBucket& bucket) {
    const Tensor sent = ops::MulScalar(bucket.all, 8).To(DType::kF16);
    return BucketReduction{
        .call = group.AllReduce(sent, rpc::ReduceOp::kMean),
        .bytes = static_cast<int64_t>(sent.nbytes()),
        .then = [sent, all = bucket.all] {
          all.CopyFrom(ops::MulScalar(sent.To(all.dtype()), 1.0 / 8));
          return BucketReduction();
        }};
  };
  const auto here =
      Train(test::TestDevice(), {.buckets = {512, 512}, .hook = halves});
  ExpectEqual(here);
  ExpectClose(here[0], Train(Device::Cpu(), {.buckets = {512, 512}})[0]);
}

TEST_F(RecordedSteps, OfGpusWithoutAStepBeforeAreRefused) {
  if (!test::TestDevice().is_cuda())
    GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  const Groups groups(1, {.name = "Here", .gpus = true});
  SmallNet model(1);
  model.To(groups.device(0));
  const auto parallel = DataParallel::Make(model, groups[0]);
  ASSERT_THAT(parallel, IsOk());
  const Tensor x = Tensor::Ones({kRows, 3, 8, 8}, {.device = groups.device(0)});
  absl::Status status;
  CatchErrors([&] {
    Graph::Record({groups.device(0)}, [&] {
      status = (*parallel)->Backward(autograd::Sum(model(x)));
    });
  }).IgnoreError();
  EXPECT_THAT(status, testing::Fails(absl::StatusCode::kFailedPrecondition,
                                     "recorded"));
}

}  // namespace
}  // namespace baton::dist
