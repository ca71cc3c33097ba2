// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/data_parallel.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/loss.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/lenet.h"
#include "models/nn/batch_norm.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/models/distributed/data_parallel/reduces_at.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::dist {
namespace {

using autograd::CrossEntropy;
using autograd::Mul;
using autograd::Relu;
using autograd::Sum;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

// Two layers, of which the first is registered last, so that gradients are
// ready in another order than the parameters' backwards.
class TwoLayers final : public nn::Module {
 public:
  explicit TwoLayers(uint64_t seed)
      : generator_(seed),
        last_(MakeModule<nn::Linear>("last", 16, 4, generator_)),
        first_(MakeModule<nn::Linear>("first", 8, 16, generator_)) {}
  Variable Forward(const Variable& x) override { return After(Before(x)); }
  Variable Before(const Variable& x) { return Relu(first_(x)); }
  Variable After(const Variable& hidden) { return last_(hidden); }

 private:
  Generator generator_;
  nn::Linear& last_;
  nn::Linear& first_;
};

Tensor Inputs(int64_t rows, uint64_t seed) {
  Generator generator(seed);
  return RandNormal({rows, 8}, generator);
}
Tensor Targets(int64_t rows, uint64_t seed) {
  Generator generator(1000 + seed);
  return RandInt(0, 4, {rows}, generator);
}

Tensor Rows(const Tensor& all, size_t rank, size_t ranks) {
  const int64_t rows = all.dim(0) / static_cast<int64_t>(ranks);
  const auto begin = static_cast<int64_t>(rank) * rows;
  return all.Slice(0, begin, begin + rows).Contiguous();
}

void ExpectSame(const nn::Module& a, const nn::Module& b) {
  const nn::StateMap others = b.StateDict();
  for (const auto& [name, value] : a.StateDict())
    EXPECT_TRUE(ops::BitEqual(value, others.at(name))) << name;
}

class DataParallelOf : public ::testing::TestWithParam<size_t> {
 protected:
  size_t ranks() const { return GetParam(); }
  std::unique_ptr<DataParallel> Make(nn::Module& module, size_t rank,
                                     const DataParallelOptions& options = {}) {
    auto made = DataParallel::Make(module, groups_[rank], options);
    EXPECT_THAT(made, IsOk());
    return made.ok() ? *std::move(made) : nullptr;
  }

  Groups groups_{static_cast<int>(GetParam())};
};

TEST_P(DataParallelOf, GivesWhatOneProcessGivesOnTheWholeBatch) {
  constexpr int kSteps = 5;
  const int64_t rows = 4 * static_cast<int64_t>(ranks());
  const auto images = [&](int step) {
    Generator generator(static_cast<uint64_t>(step));
    return RandNormal({rows, 1, 28, 28}, generator);
  };
  const auto labels = [&](int step) {
    Generator generator(100 + static_cast<uint64_t>(step));
    return RandInt(0, 10, {rows}, generator);
  };
  Generator seed(1);
  models::LeNet whole(seed);
  optim::Sgd sgd(whole.Parameters(), {.lr = 0.05, .momentum = 0.9});
  for (int step = 0; step < kSteps; ++step) {
    sgd.ZeroGrad();
    CrossEntropy(whole(images(step)), labels(step)).Backward();
    sgd.Step();
  }
  OnEach(ranks(), [&](size_t rank) {
    Generator own_seed(1 + rank);  // the first member's weights count
    models::LeNet model(own_seed);
    const auto parallel = Make(model, rank, {.buckets = {4096, 65536}});
    EXPECT_GT(parallel->buckets(), 2u);
    optim::Sgd own(model.Parameters(), {.lr = 0.05, .momentum = 0.9});
    for (int step = 0; step < kSteps; ++step) {
      own.ZeroGrad();
      ASSERT_THAT(parallel->Backward(
                      CrossEntropy(model(Rows(images(step), rank, ranks())),
                                   Rows(labels(step), rank, ranks()))),
                  IsOk());
      own.Step();
    }
    const nn::StateMap expected = whole.StateDict();
    for (const auto& [name, value] : model.StateDict())
      EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-4, 1e-5)) << name;
    EXPECT_EQ(parallel->figures().steps, kSteps);
    EXPECT_EQ(parallel->figures().bytes, kSteps * 4 * model.NumParameters());
  });
}

TEST_P(DataParallelOf, KeepsParametersEqualBitForBit) {
  std::vector<std::unique_ptr<TwoLayers>> models;
  for (size_t rank = 0; rank < ranks(); ++rank)
    models.push_back(std::make_unique<TwoLayers>(rank));
  OnEach(ranks(), [&](size_t rank) {
    TwoLayers& model = *models[rank];
    const auto parallel = Make(model, rank, {.buckets = {256, 256}});
    optim::Adam adam(model.Parameters(), {.lr = 0.01});
    for (uint64_t step = 0; step < 100; ++step) {
      adam.ZeroGrad();
      const uint64_t seed = step * 7 + rank;
      ASSERT_THAT(parallel->Backward(
                      CrossEntropy(model(Inputs(6, seed)), Targets(6, seed))),
                  IsOk());
      adam.Step();
    }
  });
  TwoLayers untrained(0);
  EXPECT_FALSE(ops::BitEqual(models[0]->Parameters()[0].tensor(),
                             untrained.Parameters()[0].tensor()));
  for (size_t rank = 1; rank < ranks(); ++rank)
    ExpectSame(*models[rank], *models[0]);
}

TEST_P(DataParallelOf, AddsUpMicroBatchesBeforeItReduces) {
  OnEach(ranks(), [&](size_t rank) {
    TwoLayers model(1), whole(1);
    const auto parallel = Make(model, rank);
    const auto loss = [](TwoLayers& of, uint64_t seed) {
      return CrossEntropy(of(Inputs(4, seed)), Targets(4, seed));
    };
    // Twice: gradients are then views of the buckets when it begins.
    for (uint64_t round = 0; round < 2; ++round) {
      ASSERT_THAT(DataParallel::AccumulateBackward(loss(model, rank)), IsOk());
      ASSERT_THAT(DataParallel::AccumulateBackward(loss(model, rank + 10)),
                  IsOk());
      ASSERT_THAT(parallel->Backward(loss(model, rank + 20)), IsOk());
      for (uint64_t other = 0; other < ranks(); ++other)
        for (const uint64_t more : {0, 10, 20})
          loss(whole, other + more).Backward();
    }
    const auto expected = whole.Parameters();
    const auto got = model.Parameters();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(ops::AllClose(
          ops::MulScalar(got[i].grad(), static_cast<double>(ranks())),
          expected[i].grad(), 1e-4, 1e-5))
          << i;
    }
  });
}

// A model of which each member's loss reaches what it says.
class Branches final : public nn::Module {
 public:
  Branches()
      : a_(RegisterParameter("a", Tensor::Full({3}, 2))),
        b_(RegisterParameter("b", Tensor::Full({3}, 3))),
        c_(RegisterParameter("c", Tensor::Full({3}, 4))) {}
  Variable Loss(bool with_b) const {
    return with_b ? Sum(Mul(a_, b_)) : Sum(a_);
  }
  const Variable& a() const { return a_; }
  const Variable& b() const { return b_; }
  const Variable& c() const { return c_; }

 private:
  Variable& a_;
  Variable& b_;
  Variable& c_;
};

TEST_P(DataParallelOf, CountsMembersWhoseLossDoesNotReachAParameterAsZero) {
  OnEach(ranks(), [&](size_t rank) {
    Branches model;
    const auto parallel = Make(model, rank, {.buckets = {12, 12}});
    const auto n = static_cast<float>(ranks());
    for (int step = 0; step < 3; ++step) {
      for (Variable parameter : model.Parameters()) parameter.ZeroGrad();
      ASSERT_THAT(parallel->Backward(model.Loss(rank == 0)), IsOk());
      EXPECT_FLOAT_EQ(model.a().grad().data<float>()[0], (3 + n - 1) / n);
      EXPECT_FLOAT_EQ(model.b().grad().data<float>()[2], 2 / n);
      EXPECT_FALSE(model.c().grad().defined());
    }
  });
}

TEST_P(DataParallelOf, TakesTheFirstMembersBuffers) {
  std::vector<std::unique_ptr<nn::BatchNorm2d>> models;
  for (size_t rank = 0; rank < ranks(); ++rank)
    models.push_back(std::make_unique<nn::BatchNorm2d>(3));
  Tensor expected;
  OnEach(ranks(), [&](size_t rank) {
    const auto parallel = Make(*models[rank], rank);
    Generator generator(rank);
    const Variable y = (*models[rank])(RandNormal({2, 3, 4, 4}, generator));
    if (rank == 0) expected = models[0]->StateDict().at("running_mean").Clone();
    ASSERT_THAT(parallel->Backward(Sum(Mul(y, y))), IsOk());
  });
  for (const auto& model : models) {
    EXPECT_TRUE(ops::BitEqual(model->StateDict().at("running_mean"), expected));
    EXPECT_EQ(model->StateDict().at("num_batches_tracked").Item(), 1);
  }
}

TEST_P(DataParallelOf, GradientsMayTravelInLessThanTheyAre) {
  OnEach(ranks(), [&](size_t rank) {
    TwoLayers model(1), whole(1);
    const auto parallel = Make(model, rank, {.travel_as = DType::kBF16});
    ASSERT_THAT(parallel->Backward(
                    CrossEntropy(model(Inputs(8, rank)), Targets(8, rank))),
                IsOk());
    for (uint64_t other = 0; other < ranks(); ++other)
      CrossEntropy(whole(Inputs(8, other)), Targets(8, other)).Backward();
    EXPECT_EQ(parallel->figures().bytes, 2 * model.NumParameters());
    for (size_t i = 0; i < model.Parameters().size(); ++i) {
      const Tensor got = model.Parameters()[i].grad();
      EXPECT_EQ(got.dtype(), DType::kF32);
      EXPECT_TRUE(
          ops::AllClose(ops::MulScalar(got, static_cast<double>(ranks())),
                        whole.Parameters()[i].grad(), 0.02, 0.004))
          << i;
    }
  });
}

// The first layer, which is registered last, is the first in the buckets at the
// beginning, and none is reduced before its gradients are there.
class LearningDataParallel : public ::testing::TestWithParam<bool> {};

TEST_P(LearningDataParallel,
       ReducesInTheSecondStepWhatIsThereWhileBackwardRuns) {
  const Groups groups(2);
  OnEach(2, [&](size_t rank) {
    TwoLayers model(1);
    const auto parallel =
        DataParallel::Make(model, groups[rank],
                           {.buckets = {.first = 1, .others = 1, .last = 1},
                            .shard_optimizer = GetParam()});
    ASSERT_THAT(parallel, IsOk());
    const auto step = [&](const auto& watch) {
      Variable hidden = model.Before(Inputs(6, rank));
      watch(hidden);
      ASSERT_THAT((*parallel)->Backward(
                      CrossEntropy(model.After(hidden), Targets(6, rank))),
                  IsOk());
    };
    const size_t before = groups[rank]->records().size();
    size_t then = 0;
    step([&](Variable& hidden) {
      hidden.AddHook([&](const Tensor&) {
        then = groups[rank]->records().size();
        return Tensor();
      });
    });
    EXPECT_EQ(then, before);
    std::shared_ptr<const bool> reduced;
    step([&](Variable& hidden) {
      reduced = testing::ReducesAt(hidden, *groups[rank]);
    });
    EXPECT_TRUE(*reduced);
  });
}

INSTANTIATE_TEST_SUITE_P(Optimizer, LearningDataParallel, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Divided" : "Whole";
                         });

TEST(ShardedDataParallel, ClipsByTheNormOfAllShards) {
  constexpr size_t kRanks = 3;
  const Groups groups(kRanks);
  OnEach(kRanks, [&](size_t rank) {
    TwoLayers sharded(1), plain(1);
    const auto train = [&](TwoLayers& model, bool shard) {
      const auto parallel =
          DataParallel::Make(model, groups[rank],
                             {.buckets = {256, 512}, .shard_optimizer = shard});
      ASSERT_THAT(parallel, IsOk());
      optim::Sgd sgd(shard ? (*parallel)->shards() : model.Parameters(),
                     {.lr = 0.1});
      sgd.set_clip({.norm = 0.01});
      for (uint64_t i = 0; i < 5; ++i) {
        sgd.ZeroGrad();
        const uint64_t seed = i * 7 + rank;
        ASSERT_THAT((*parallel)->Backward(
                        CrossEntropy(model(Inputs(6, seed)), Targets(6, seed))),
                    IsOk());
        if (!shard) {
          sgd.Step();
          continue;
        }
        const auto norm = (*parallel)->NormOfShards();
        ASSERT_THAT(norm, IsOk());
        EXPECT_GT(*norm, 0.01);
        sgd.Step([](const Variable& each) { return each.gradient(); }, nullptr,
                 *norm);
        ASSERT_THAT((*parallel)->GatherParameters(), IsOk());
      }
    };
    train(sharded, true);
    train(plain, false);
    const nn::StateMap expected = plain.StateDict();
    for (const auto& [name, value] : sharded.StateDict())
      EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-5, 1e-6)) << name;
  });
}

int64_t StateElements(const optim::Optimizer& optimizer) {
  int64_t elements = 0;
  for (const auto& [name, tensor] : optimizer.ExportState())
    if (tensor.numel() > 1) elements += tensor.numel();
  return elements;
}

TEST_P(DataParallelOf, ShardsStepParametersAsAWholeOptimizerDoes) {
  std::vector<std::unique_ptr<TwoLayers>> sharded, plain;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    sharded.push_back(std::make_unique<TwoLayers>(1));
    plain.push_back(std::make_unique<TwoLayers>(1));
  }
  OnEach(ranks(), [&](size_t rank) {
    const auto train = [&](TwoLayers& model, DataParallel& parallel,
                           const std::vector<Variable>& stepped) {
      optim::Adam adam(stepped, {.lr = 0.01});
      for (uint64_t step = 0; step < 20; ++step) {
        adam.ZeroGrad();
        model.ZeroGrad();
        const uint64_t seed = step * 7 + rank;
        ASSERT_THAT(parallel.Backward(
                        CrossEntropy(model(Inputs(6, seed)), Targets(6, seed))),
                    IsOk());
        adam.Step();
        ASSERT_THAT(parallel.GatherParameters(), IsOk());
      }
      const int64_t whole = 2 * model.NumParameters();
      const bool shards = &model == sharded[rank].get();
      const auto part = static_cast<double>(shards ? ranks() : 1);
      EXPECT_NEAR(static_cast<double>(StateElements(adam)),
                  static_cast<double>(whole) / part,
                  2 * 16 * static_cast<double>(parallel.buckets()));
    };
    const auto of_shards = Make(
        *sharded[rank], rank, {.buckets = {256, 512}, .shard_optimizer = true});
    EXPECT_GT(of_shards->shards().size(), 1u);
    train(*sharded[rank], *of_shards, of_shards->shards());
    const auto of_all = Make(*plain[rank], rank);
    train(*plain[rank], *of_all, plain[rank]->Parameters());
  });
  for (size_t rank = 0; rank < ranks(); ++rank) {
    ExpectSame(*sharded[rank], *sharded[0]);
    const nn::StateMap expected = plain[0]->StateDict();
    for (const auto& [name, value] : sharded[rank]->StateDict())
      EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-4, 1e-5)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DataParallelOf, ::testing::Values(1, 2, 3),
                         [](const auto& info) {
                           return absl::StrCat("Of", info.param);
                         });

}  // namespace
}  // namespace baton::dist
