// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/random.h"
#include "optim/adam.h"
#include "optim/grad_scaler.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// Optimizers of tables that few rows are looked up in. What a step of rows
// gives is in tests/optim/golden_test.cc.
namespace baton::optim {
namespace {

using test::Put;
using test::TestDevice;
using ::testing::HasSubstr;

class RowsOfATable : public ::testing::Test {
 protected:
  RowsOfATable()
      : start_(Put([] {
          Generator generator(2);
          return RandNormal({6, 4}, generator);
        }())) {}

  Variable Table(DType dtype = DType::kF32) const {
    return Variable(start_.To(dtype).Clone(), true);
  }
  // Of the sum of the squares of rows 4, 1 and 4.
  static void Backward(const Variable& table, bool sparse) {
    const Variable rows =
        autograd::Embedding(table, Put<int64_t>({4, 1, 4}), {.sparse = sparse});
    autograd::Sum(rows * rows).Backward();
  }

  const Tensor start_;
};

TEST_F(RowsOfATable, AreClippedByTheNormOfAllGradients) {
  const Variable one = Table(), other = Table();
  Sgd sparse({one}, {.lr = 0.1}), dense({other}, {.lr = 0.1});
  for (Sgd* sgd : {&sparse, &dense}) sgd->set_clip({.norm = 0.5});
  Backward(one, true);
  Backward(other, false);
  sparse.Step();
  dense.Step();
  EXPECT_TRUE(ops::AllClose(sparse.grad_norm(), dense.grad_norm(), 1e-6, 0));
  EXPECT_TRUE(ops::AllClose(one.tensor(), other.tensor(), 1e-6, 1e-6));
}

TEST_F(RowsOfATable, AccumulateUntilZeroGrad) {
  const Variable one = Table(), other = Table();
  Sgd sparse({one}, {.lr = 0.1}), dense({other}, {.lr = 0.1});
  for (int pass = 0; pass < 3; ++pass) {
    Backward(one, true);
    Backward(other, false);
  }
  EXPECT_TRUE(one.gradient().is_rows());
  EXPECT_TRUE(ops::AllClose(one.grad(), other.grad()));
  sparse.Step();
  dense.Step();
  EXPECT_TRUE(ops::AllClose(one.tensor(), other.tensor()));
  sparse.ZeroGrad();
  EXPECT_FALSE(one.gradient().defined());
}

TEST_F(RowsOfATable, OfFewBitsHaveAMaster) {
  const Variable table = Table(DType::kBF16);
  SparseAdam adam({table}, {.lr = 0.1});
  Backward(table, true);
  adam.Step();
  const StateDict state = adam.ExportState();
  const Tensor master = state.at("0.master");
  EXPECT_TRUE(ops::BitEqual(table.tensor(), master.To(DType::kBF16)));
  EXPECT_TRUE(ops::BitEqual(table.tensor().Slice(0, 2, 4),
                            start_.To(DType::kBF16).Slice(0, 2, 4)));
  EXPECT_FALSE(ops::BitEqual(table.tensor().Select(0, 1),
                             start_.To(DType::kBF16).Select(0, 1)));
  EXPECT_TRUE(ops::AllClose(state.at("0.exp_avg").Slice(0, 2, 4),
                            Tensor::Zeros({2, 4}, {.device = TestDevice()})));
}

TEST_F(RowsOfATable, AreUnscaled) {
  const Variable one = Table(), other = Table();
  Sgd scaled({one}, {.lr = 0.1}), plain({other}, {.lr = 0.1});
  GradScaler scaler({TestDevice()}, {.scale = 256});
  const Variable rows =
      autograd::Embedding(one, Put<int64_t>({4, 1, 4}), {.sparse = true});
  autograd::Sum(rows * rows).Backward(scaler.scale(TestDevice()));
  scaler.Step(scaled);
  Backward(other, true);
  plain.Step();
  EXPECT_TRUE(ops::AllClose(one.tensor(), other.tensor(), 1e-6, 1e-6));
}

TEST_F(RowsOfATable, AreRefusedWithoutAChange) {
  const Variable table = Table();
  Adam adam({table}, {.lr = 0.1});
  Backward(table, true);
  EXPECT_THAT(test::ErrorOf([&] { adam.Step(); }),
              HasSubstr("take SparseAdam, or Sgd or Adagrad"));
  EXPECT_TRUE(ops::BitEqual(table.tensor(), start_));
  EXPECT_EQ(adam.ExportState().count("0.step"), 0u);
}

// A checkpoint of a table is as of any parameter, and goes on.
TEST_F(RowsOfATable, HaveAStateThatIsExportedAndImported) {
  const Variable one = Table(), other = Table();
  SparseAdam adam({one}, {.lr = 0.1}), later({other}, {.lr = 0.1});
  const auto step = [](const Variable& table, SparseAdam& by) {
    by.ZeroGrad();
    Backward(table, true);
    by.Step();
  };
  step(one, adam);
  other.tensor().CopyFrom(one.tensor());
  ASSERT_TRUE(later.ImportState(adam.ExportState()).ok());
  step(one, adam);
  step(other, later);
  EXPECT_TRUE(ops::BitEqual(one.tensor(), other.tensor()));
}

}  // namespace
}  // namespace baton::optim
