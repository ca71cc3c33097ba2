// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/gradient_hook.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/loss.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/mlp.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::dist {
namespace {

using testing::Fails;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

models::Mlp MakeMlp(uint64_t seed) {
  Generator generator(seed);
  return models::Mlp({.widths = {8, 16, 12, 4}}, generator);
}

Variable HookLossOf(models::Mlp& model, uint64_t seed) {
  Generator generator(seed);
  const Tensor x = RandNormal({6, 8}, generator);
  return autograd::CrossEntropy(model(x), RandInt(0, 4, {6}, generator));
}

// Divides a bucket by the root of the mean of all members' squares, so that no
// scale of the gradients is too large or too small for f16: one call for that
// mean, and one for the gradients.
BucketReduction ReduceNormalised(rpc::ProcessGroup& group,
                                 const GradientBucket& bucket) {
  const Tensor all = bucket.all;
  const Tensor square = ops::Mean(ops::Mul(all, all));
  return {.call = group.AllReduce(square, rpc::ReduceOp::kMean),
          .bytes = static_cast<int64_t>(square.nbytes()),
          .then = [&group, all, square] {
            const Tensor size = ops::Sqrt(square);
            const Tensor half = ops::Div(all, size).To(DType::kF16);
            return BucketReduction{
                .call = group.AllReduce(half, rpc::ReduceOp::kMean),
                .bytes = static_cast<int64_t>(half.nbytes()),
                .then = [all, half, size] {
                  all.CopyFrom(ops::Mul(half.To(all.dtype()), size));
                  return BucketReduction();
                }};
          }};
}

class GradientHookOf : public ::testing::TestWithParam<size_t> {
 protected:
  size_t ranks() const { return GetParam(); }
  std::unique_ptr<DataParallel> Make(nn::Module& module, size_t rank,
                                     GradientHook hook) {
    auto made = DataParallel::Make(
        module, groups_[rank],
        {.buckets = {300, 300, 300}, .hook = std::move(hook)});
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }

  Groups groups_{static_cast<int>(GetParam())};
};

TEST_P(GradientHookOf, IsCalledForEachBucketAndWhatItLeavesIsTheGradient) {
  OnEach(ranks(), [&](size_t rank) {
    models::Mlp model = MakeMlp(1);
    std::vector<GradientBucket> seen;
    const auto parallel =
        Make(model, rank,
             [&](rpc::ProcessGroup& group, const GradientBucket& bucket) {
               EXPECT_EQ(group.size(), static_cast<int>(ranks()));
               seen.push_back(bucket);
               bucket.all.Fill(static_cast<double>(bucket.number) + 1);
               return BucketReduction();
             });
    for (int step = 0; step < 2; ++step) {  // in two orders of gradients
      seen.clear();
      model.ZeroGrad();
      ASSERT_GT(parallel->buckets(), 2u);
      ASSERT_THAT(parallel->Backward(HookLossOf(model, rank)), IsOk());
      std::vector<int> times(model.Parameters().size());
      for (size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].number, i);
        ASSERT_EQ(seen[i].parameters.size(), seen[i].gradients.size());
        for (size_t part = 0; part < seen[i].parameters.size(); ++part) {
          const size_t place = seen[i].parameters[part];
          ++times[place];
          const Tensor gradient = model.Parameters()[place].grad();
          EXPECT_TRUE(SameView(gradient, seen[i].gradients[part]));
          EXPECT_TRUE(ops::BitEqual(
              gradient,
              Tensor::Full(gradient.shape(), static_cast<double>(i) + 1)));
        }
      }
      EXPECT_EQ(times, std::vector<int>(times.size(), 1));
    }
  });
}

TEST_P(GradientHookOf, GetsEachMembersOwnGradients) {
  OnEach(ranks(), [&](size_t rank) {
    models::Mlp model = MakeMlp(1), alone = MakeMlp(1);
    HookLossOf(alone, rank).Backward();
    const auto parallel = Make(
        model, rank, [&](rpc::ProcessGroup&, const GradientBucket& bucket) {
          for (size_t part = 0; part < bucket.parameters.size(); ++part) {
            EXPECT_TRUE(ops::BitEqual(
                bucket.gradients[part],
                alone.Parameters()[bucket.parameters[part]].grad()));
          }
          return BucketReduction();
        });
    ASSERT_THAT(parallel->Backward(HookLossOf(model, rank)), IsOk());
  });
}

// The gradients are beyond what f16 has.
TEST_P(GradientHookOf, MayMakeSeveralCallsForABucket) {
  constexpr double kScale = 1e7;
  OnEach(ranks(), [&](size_t rank) {
    models::Mlp model = MakeMlp(1), whole = MakeMlp(1);
    const auto parallel = Make(model, rank, ReduceNormalised);
    const auto buckets = static_cast<int64_t>(parallel->buckets());
    ASSERT_THAT(
        parallel->Backward({HookLossOf(model, rank)}, {Tensor::Scalar(kScale)}),
        IsOk());
    for (uint64_t other = 0; other < ranks(); ++other)
      HookLossOf(whole, other).Backward();
    EXPECT_EQ(parallel->figures().bytes,
              2 * model.NumParameters() + 4 * buckets);
    for (size_t i = 0; i < model.Parameters().size(); ++i) {
      const Tensor got = model.Parameters()[i].grad();
      EXPECT_EQ(got.dtype(), DType::kF32);
      EXPECT_TRUE(ops::AllClose(
          ops::MulScalar(got, static_cast<double>(ranks()) / kScale),
          whole.Parameters()[i].grad(), 4e-3, 4e-4))
          << i;
    }
  });
}

TEST_P(GradientHookOf, KeepsParametersEqualBitForBit) {
  std::vector<nn::StateMap> states(ranks());
  std::vector<double> first(ranks()), last(ranks());
  OnEach(ranks(), [&](size_t rank) {
    models::Mlp model = MakeMlp(1 + rank);
    const auto parallel = Make(model, rank, ReduceNormalised);
    optim::Sgd sgd(model.Parameters(), {.lr = 0.1, .momentum = 0.9});
    for (uint64_t step = 0; step < 100; ++step) {
      sgd.ZeroGrad();
      const Variable loss = HookLossOf(model, rank);
      ASSERT_THAT(parallel->Backward(loss), IsOk());
      sgd.Step();
      (step == 0 ? first : last)[rank] = loss.tensor().Item();
    }
    states[rank] = model.StateDict();
  });
  for (size_t rank = 0; rank < ranks(); ++rank) {
    EXPECT_LT(last[rank], first[rank]);
    for (const auto& [name, value] : states[rank])
      EXPECT_TRUE(ops::BitEqual(value, states[0].at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GradientHookOf, ::testing::Values(1, 2, 3),
                         [](const auto& info) {
                           return absl::StrCat("Of", info.param);
                         });

TEST(GradientHook, AnErrorInItIsToldToAll) {
  constexpr size_t kRanks = 3;
  const Groups groups(kRanks);
  OnEach(kRanks, [&](size_t rank) {
    models::Mlp model = MakeMlp(1);
    const auto parallel = DataParallel::Make(
        model, groups[rank],
        {.hook = [&](rpc::ProcessGroup& group, const GradientBucket& bucket) {
          BucketReduction reduction = MeanHook()(group, bucket);
          reduction.then = [rank]() -> BucketReduction {
            if (rank == 1)
              throw Error(absl::DataLossError("no such compression"));
            return {};
          };
          return reduction;
        }});
    ASSERT_THAT(parallel, IsOk());
    const absl::Status status = (*parallel)->Backward(HookLossOf(model, rank));
    if (rank == 1) {
      EXPECT_THAT(status,
                  Fails(absl::StatusCode::kDataLoss, "no such compression"));
    }
    // The others may have had all they need of this step.
    if (status.ok()) {
      EXPECT_THAT((*parallel)->Backward(HookLossOf(model, rank)),
                  Fails(absl::StatusCode::kDataLoss, "no such compression"));
    }
  });
}

TEST(GradientHook, GoesNotWithOtherWaysToReduce) {
  const Groups groups(1);
  models::Mlp model = MakeMlp(1);
  for (const DataParallelOptions& options :
       {DataParallelOptions{.travel_as = DType::kBF16},
        DataParallelOptions{.power_sgd_rank = 1},
        DataParallelOptions{.uneven_inputs = true},
        DataParallelOptions{.shard_optimizer = true}}) {
    DataParallelOptions hooked = options;
    hooked.hook = MeanHook();
    EXPECT_THAT(DataParallel::Make(model, groups[0], hooked),
                Fails(absl::StatusCode::kInvalidArgument, "a hook goes"));
  }
}

}  // namespace
}  // namespace baton::dist
