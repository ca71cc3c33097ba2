// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "models/data/sampler.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/elastic.h"
#include "models/distributed/data_parallel/sync_batch_norm.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/collectives/process_group.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/toy_stages.h"

// The code that the guides in docs/ show of data parallel training
// (cmake/check_snippets.py).
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::IsOk;
using testing::NoisyStage;
using testing::OnEach;

constexpr int64_t kSamples = 128, kGuideWidth = 8;

Tensor AllImages() {
  Generator generator(1);
  return RandNormal({kSamples, kGuideWidth}, generator);
}
Tensor AllLabels() {
  Generator generator(2);
  return RandInt(0, kGuideWidth, {kSamples}, generator);
}
Tensor Half(const Tensor& all, size_t which) {
  const auto begin = static_cast<int64_t>(which) * kSamples / 2;
  return all.Slice(0, begin, begin + kSamples / 2).Contiguous();
}
Tensor Images(const std::vector<int64_t>& samples) {
  return ops::Embedding(AllImages(), Tensor::From(samples));
}
Tensor Labels(const std::vector<int64_t>& samples) {
  return ops::Gather(AllLabels(), 0, Tensor::From(samples));
}

void ExpectClose(const nn::StateMap& a, const nn::StateMap& b) {
  for (const auto& [name, value] : a)
    EXPECT_TRUE(ops::AllClose(value, b.at(name), 1e-4, 1e-5)) << name;
}
void ExpectEqual(const nn::StateMap& a, const nn::StateMap& b) {
  for (const auto& [name, value] : a)
    EXPECT_TRUE(ops::BitEqual(value, b.at(name))) << name;
}

testing::ClusterOptions Workers(const std::vector<std::string>& names) {
  testing::ClusterOptions options;
  options.names = names;
  options.fill = [](rpc::Registry& registry) {
    Register(registry);
    RegisterPipeline(registry);
    RegisterOptimizer<optim::Sgd>(registry);
    RegisterModule<DenseStage>(registry);
    rpc::RegisterCollectives(registry);
    RegisterElastic(registry);
  };
  options.on_start = [](rpc::Agent& agent) {
    Attach(agent);
    rpc::AttachCollectives(agent);
    AttachElastic(agent);
  };
  return options;
}

// Runs the members of a cluster of two.
using Member = std::function<absl::Status(rpc::Agent& agent, size_t rank)>;
void OnTwo(const Member& member) {
  testing::LocalCluster cluster(Workers({"w0", "w1"}));
  OnEach(2, [&](size_t rank) {
    EXPECT_THAT(member(cluster[rank], rank), IsOk());
  });
  cluster.ExpectIdle();
}

struct Batch {
  Tensor x, y;
};

absl::Status Train(rpc::Agent& agent, nn::Module& model,
                   const std::vector<Batch>& batches) {
  // [train]
  ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
  ASSIGN_OR_RETURN(auto parallel, dist::DataParallel::Make(model, group));
  optim::Sgd sgd(model.Parameters(), {.lr = 0.1});
  for (const auto& [x, y] : batches) {
    sgd.ZeroGrad();
    RETURN_IF_ERROR(parallel->Backward(nn::CrossEntropy(model(x), y)));
    sgd.Step();
  }
  // [end]
  return absl::OkStatus();
}

TEST(DataParallelGuide, TrainsAsOneProcessOnAllSamples) {
  DenseStage whole(kGuideWidth, kGuideWidth, false, 1);
  optim::Sgd sgd(whole.Parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    sgd.ZeroGrad();
    nn::CrossEntropy(whole(AllImages()), AllLabels()).Backward();
    sgd.Step();
  }
  OnTwo([&](rpc::Agent& agent, size_t rank) {
    DenseStage model(kGuideWidth, kGuideWidth, false, 1 + rank);
    const Batch half{Half(AllImages(), rank), Half(AllLabels(), rank)};
    RETURN_IF_ERROR(Train(agent, model, {half, half, half}));
    ExpectClose(model.StateDict(), whole.StateDict());
    return absl::OkStatus();
  });
}

// [hook]
// Gradients travel as f16, 1024 times as large.
dist::BucketReduction ReduceAsHalf(rpc::ProcessGroup& group,
                                   const dist::GradientBucket& bucket) {
  const Tensor half = ops::MulScalar(bucket.all, 1024).To(DType::kF16);
  return {.call = group.AllReduce(half, rpc::ReduceOp::kMean),
          .bytes = static_cast<int64_t>(half.nbytes()),
          .then = [half, all = bucket.all] {
            all.CopyFrom(half);
            ops::ScaleInto(all, 1.0 / 1024);
            return dist::BucketReduction();
          }};
}
// [end]

TEST(DataParallelGuide, HasAHookThatHalvesWhatTravels) {
  DenseStage whole(kGuideWidth, kGuideWidth, false, 1);
  nn::CrossEntropy(whole(AllImages()), AllLabels()).Backward();
  OnTwo([&](rpc::Agent& agent, size_t rank) {
    DenseStage model(kGuideWidth, kGuideWidth, false, 1);
    ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
    ASSIGN_OR_RETURN(auto parallel, dist::DataParallel::Make(
                                        model, group, {.hook = ReduceAsHalf}));
    RETURN_IF_ERROR(parallel->Backward(nn::CrossEntropy(
        model(Half(AllImages(), rank)), Half(AllLabels(), rank))));
    EXPECT_EQ(parallel->figures().bytes, 2 * model.NumParameters());
    for (size_t i = 0; i < model.Parameters().size(); ++i) {
      EXPECT_TRUE(ops::AllClose(model.Parameters()[i].grad(),
                                whole.Parameters()[i].grad(), 2e-3, 1e-4));
    }
    return absl::OkStatus();
  });
}

absl::Status ReduceThinMatrices(rpc::Agent& agent, nn::Module& model,
                                const Tensor& x, const Tensor& y) {
  // [options]
  ASSIGN_OR_RETURN(auto group, rpc::ProcessGroup::Make(agent).Await());
  dist::SynchroniseBatchNorms(model, group);  // where small batches want it
  ASSIGN_OR_RETURN(auto parallel, dist::DataParallel::Make(
                                      model, group, {.power_sgd_rank = 2}));
  // in each step:
  RETURN_IF_ERROR(parallel->Backward(nn::CrossEntropy(model(x), y)));
  // [end]
  EXPECT_LT(parallel->figures().bytes, 4 * model.NumParameters());
  return absl::OkStatus();
}

TEST(DataParallelGuide, BatchNormsOfAllAndThinMatrices) {
  NoisyStage whole(kGuideWidth, 0, 1);
  whole(AllImages());
  OnTwo([&](rpc::Agent& agent, size_t rank) {
    NoisyStage model(kGuideWidth, 0, 1);
    RETURN_IF_ERROR(ReduceThinMatrices(agent, model, Half(AllImages(), rank),
                                       Half(AllLabels(), rank)));
    ExpectClose(model.StateDict(), whole.StateDict());  // running statistics
    return absl::OkStatus();
  });
}

absl::Status TrainElastically(rpc::Agent& agent, nn::Module& model,
                              std::vector<double>& losses) {
  const auto sampler = std::make_shared<data::RandomSampler>(kSamples);
  optim::Sgd sgd(model.Parameters(), {.lr = 0.1});
  // [elastic]
  ASSIGN_OR_RETURN(auto training,
                   dist::ElasticTraining::Make(
                       agent, model, sgd,
                       {.samples = sampler, .batch = 64, .min_members = 2}));
  while (training->epoch() < 10) {
    ASSIGN_OR_RETURN(const auto step, training->Step([&](const auto& share) {
      return nn::CrossEntropy(model(Images(share.samples)),
                              Labels(share.samples));
    }));
    losses.push_back(step.loss);  // over the whole batch
  }
  // [end]
  return training->group().Barrier().Await();
}

TEST(DataParallelGuide, ElasticMembersHaveTheSameModel) {
  std::vector<nn::StateMap> states(2);
  std::vector<std::vector<double>> losses(2);
  OnTwo([&](rpc::Agent& agent, size_t rank) {
    DenseStage model(kGuideWidth, kGuideWidth, false, 1 + rank);
    RETURN_IF_ERROR(TrainElastically(agent, model, losses[rank]));
    states[rank] = model.StateDict();
    return absl::OkStatus();
  });
  ExpectEqual(states[0], states[1]);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0].size(), 10 * kSamples / 64);
  EXPECT_LT(losses[0].back(), losses[0].front());
}

using Stages = std::vector<Module<DenseStage>>;
absl::StatusOr<Stages> MakeStages(rpc::Agent& agent,
                                  const std::vector<std::string>& workers,
                                  uint64_t seed) {
  Stages stages;
  for (const std::string& worker : workers) {
    ASSIGN_OR_RETURN(auto stage, Module<DenseStage>::Create(
                                     agent, worker, kGuideWidth, kGuideWidth,
                                     stages.empty(), seed++)
                                     .Await());
    stages.push_back(std::move(stage));
  }
  return stages;
}

// The loss of each step, over the whole batch.
absl::StatusOr<std::vector<double>> TrainCopies(
    rpc::Agent& agent, dist::Pipeline* left, dist::Pipeline* right,
    dist::Optimizer<optim::Sgd>& sgd_of_left,
    dist::Optimizer<optim::Sgd>& sgd_of_right) {
  const Tensor first_half = Half(AllImages(), 0),
               second_half = Half(AllImages(), 1);
  const Tensor first_labels = Half(AllLabels(), 0),
               second_labels = Half(AllLabels(), 1);
  const int steps = 4;
  std::vector<double> losses;
  // [replicas]
  RETURN_IF_ERROR(dist::Pipeline::MakeReplicas(agent, {left, right}));
  for (int step = 0; step < steps; ++step) {
    const auto a = left->StepAsync(sgd_of_left, first_half, first_labels);
    const auto b = right->StepAsync(sgd_of_right, second_half, second_labels);
    ASSIGN_OR_RETURN(const auto of_left, a.Await());
    ASSIGN_OR_RETURN(const auto of_right, b.Await());
    losses.push_back((of_left.loss + of_right.loss) / 2);
  }
  // [end]
  return losses;
}

absl::Status ExpectEqualCopies(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(const Stages a, MakeStages(agent, {"a0", "a1"}, 1));
  ASSIGN_OR_RETURN(const Stages b, MakeStages(agent, {"b0", "b1"}, 11));
  ASSIGN_OR_RETURN(auto left, dist::Pipeline::Make(agent, {}, {a[0], a[1]}));
  ASSIGN_OR_RETURN(auto right, dist::Pipeline::Make(agent, {}, {b[0], b[1]}));
  dist::Optimizer<optim::Sgd> sgd_of_left(agent, {.lr = 0.1}, {a[0], a[1]});
  dist::Optimizer<optim::Sgd> sgd_of_right(agent, {.lr = 0.1}, {b[0], b[1]});
  ASSIGN_OR_RETURN(
      const auto losses,
      TrainCopies(agent, left.get(), right.get(), sgd_of_left, sgd_of_right));
  EXPECT_LT(losses.back(), losses.front());
  for (size_t stage = 0; stage < 2; ++stage) {
    ASSIGN_OR_RETURN(const nn::StateMap of_a, a[stage].StateDict().Await());
    ASSIGN_OR_RETURN(const nn::StateMap of_b, b[stage].StateDict().Await());
    ExpectEqual(of_a, of_b);
  }
  return absl::OkStatus();
}

TEST(DataParallelGuide, CopiesOfAPipelineStayEqual) {
  testing::LocalCluster cluster(Workers({"alice", "a0", "a1", "b0", "b1"}));
  EXPECT_THAT(ExpectEqualCopies(cluster["alice"]), IsOk());
  cluster.ExpectIdle();
}

}  // namespace
}  // namespace baton::dist
