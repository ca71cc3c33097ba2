// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/sync_batch_norm.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/nn/batch_norm.h"
#include "models/nn/linear.h"
#include "models/nn/scopes.h"
#include "models/residual_block.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::dist {
namespace {

using autograd::Mul;
using autograd::Sum;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

constexpr int64_t kSyncRows = 12;  // of all members

// Normalises with and without ReLU, and with a residual.
class Block final : public nn::Module {
 public:
  explicit Block(uint64_t seed)
      : generator_(seed),
        first_(MakeModule<nn::BatchNorm2d>("first", 4)),
        block_(MakeModule<models::BasicBlock>(
            "block", models::ResidualBlockOptions{.in = 4, .planes = 4},
            generator_)),
        last_(MakeModule<nn::Linear>("last", 4 * 5 * 5, 3, generator_)) {}
  Variable Forward(const Variable& x) override {
    return last_(autograd::Flatten(block_(first_(x)), 1));
  }

 private:
  Generator generator_;
  nn::BatchNorm2d& first_;
  models::BasicBlock& block_;
  nn::Linear& last_;
};

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Generator generator(seed);
  return RandNormal(shape, generator);
}
Tensor SyncImages() { return Numbers({kSyncRows, 4, 5, 5}, 1); }
// What the loss weights the outputs by.
Tensor Weights() { return Numbers({kSyncRows, 3}, 2); }

// Each member has more than the one before it.
Tensor ShareOfMember(const Tensor& all, size_t rank, size_t ranks) {
  const auto before = [&](size_t of) {
    return kSyncRows * static_cast<int64_t>(of * (of + 1)) /
           static_cast<int64_t>(ranks * (ranks + 1));
  };
  return all.Slice(0, before(rank), before(rank + 1)).Contiguous();
}

class SyncBatchNormOf : public ::testing::TestWithParam<size_t> {
 protected:
  size_t ranks() const { return GetParam(); }
  Groups groups_{static_cast<int>(GetParam())};
};

TEST_P(SyncBatchNormOf, GivesWhatOneProcessGivesOnTheWholeBatch) {
  Block whole(1);
  const Variable all(SyncImages(), true);
  const Variable expected = whole(all);
  Sum(Mul(expected, Weights())).Backward();
  OnEach(ranks(), [&](size_t rank) {
    Block model(1);
    SynchroniseBatchNorms(model, groups_[rank]);
    auto parallel = DataParallel::Make(model, groups_[rank]);
    ASSERT_THAT(parallel, IsOk());
    const Variable x(ShareOfMember(SyncImages(), rank, ranks()), true);
    const Variable y = model(x);
    EXPECT_TRUE(ops::AllClose(y.tensor(),
                              ShareOfMember(expected.tensor(), rank, ranks()),
                              1e-4, 1e-5));
    const Variable loss = Sum(Mul(y, ShareOfMember(Weights(), rank, ranks())));
    ASSERT_THAT((*parallel)->Backward(loss), IsOk());
    EXPECT_TRUE(ops::AllClose(
        x.grad(), ShareOfMember(all.grad(), rank, ranks()), 1e-3, 1e-4));
    const auto parameters = whole.Parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor sum = ops::MulScalar(model.Parameters()[i].grad(),
                                        static_cast<double>(ranks()));
      EXPECT_TRUE(ops::AllClose(sum, parameters[i].grad(), 1e-3, 1e-3)) << i;
    }
    const nn::StateMap state = whole.StateDict();
    for (const auto& [name, value] : model.StateDict())
      EXPECT_TRUE(ops::AllClose(value, state.at(name), 1e-4, 1e-5)) << name;
  });
}

TEST_P(SyncBatchNormOf, UsesItsRunningStatisticsInEval) {
  nn::BatchNorm2d norm(4);
  norm.Eval();
  const Tensor alone = norm(SyncImages()).tensor();
  SynchroniseBatchNorms(norm, groups_[0]);
  // Nobody else is waited for.
  EXPECT_TRUE(ops::BitEqual(norm(SyncImages()).tensor(), alone));
}

TEST_P(SyncBatchNormOf, TakesAMemberWithoutRows) {
  nn::BatchNorm2d whole(4);
  const Variable all(SyncImages(), true);
  const Tensor dy = Numbers({kSyncRows, 4, 5, 5}, 4);
  whole.ForwardRelu(all).Backward(dy);
  OnEach(ranks(), [&](size_t rank) {
    nn::BatchNorm2d norm(4);
    SynchroniseBatchNorms(norm, groups_[rank]);
    const int64_t rows = rank == 0 ? kSyncRows : 0;
    const Variable x(SyncImages().Slice(0, 0, rows), true);
    norm.ForwardRelu(x).Backward(dy.Slice(0, 0, rows));
    EXPECT_EQ(x.grad().shape(), x.shape());
    if (rows > 0) {
      EXPECT_TRUE(ops::AllClose(x.grad(), all.grad(), 1e-4, 1e-5));
    }
    const nn::StateMap state = whole.StateDict();
    for (const auto& [name, value] : norm.StateDict())
      EXPECT_TRUE(ops::AllClose(value, state.at(name), 1e-5, 1e-6)) << name;
  });
}

// As a pipeline's stages have them.
TEST_P(SyncBatchNormOf, PostponesStatisticsOfMicroBatches) {
  nn::BatchNorm2d whole(4);
  const Tensor images =
      Numbers({6 * static_cast<int64_t>(ranks()), 4, 2, 2}, 3);
  whole(images);
  OnEach(ranks(), [&](size_t rank) {
    nn::BatchNorm2d norm(4);
    SynchroniseBatchNorms(norm, groups_[rank]);
    nn::PostponedStatistics postponed;
    const auto begin = 6 * static_cast<int64_t>(rank);
    for (const int64_t part : {0, 3}) {
      const nn::PostponedStatistics::Scope scope(postponed);
      norm(images.Slice(0, begin + part, begin + part + 3));
    }
    EXPECT_EQ(norm.StateDict().at("num_batches_tracked").Item(), 0);
    postponed.ApplyAsOne();
    const nn::StateMap expected = whole.StateDict();
    for (const auto& [name, value] : norm.StateDict())
      EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-5, 1e-6)) << name;
  });
}

TEST_P(SyncBatchNormOf, SaysWhatIsWrongWithTheGroup) {
  OnEach(ranks(), [&](size_t rank) {
    nn::BatchNorm2d norm(4);
    SynchroniseBatchNorms(norm, groups_[rank]);
    if (rank == 0) groups_[rank]->Abort(absl::AbortedError("enough"));
    const absl::Status status = CatchErrors([&] { norm(SyncImages()); });
    EXPECT_THAT(status, testing::Fails(absl::StatusCode::kAborted, "enough"));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SyncBatchNormOf, ::testing::Values(1, 2, 3),
                         [](const auto& info) {
                           return absl::StrCat("Of", info.param);
                         });

}  // namespace
}  // namespace baton::dist
