// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/indexing.h"

#include <cmath>
#include <functional>

#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using test::Put;
using Inputs = const std::vector<Variable>&;

TEST(IndexingGradients, Cat) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Cat({v[0], v[1], v[2]}, 1);
      },
      {Random({2, 1}), Random({2, 3}), Random({2, 2})}));
}

TEST(IndexingGradients, CatByANegativeAxis) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Cat({v[0], v[1]}, -2);
      },
      {Random({1, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, Stack) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Stack({v[0], v[1]}, 1);
      },
      {Random({2, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, StackByANegativeAxis) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) {
        return Stack({v[0], v[1]}, -1);
      },
      {Random({2, 3}), Random({2, 3})}));
}

TEST(IndexingGradients, GatherSumsRepeats) {
  const Tensor index = Put<int64_t>({0, 0, 2, 1, 2, 2}, {2, 3});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Gather(v[0], 1, index); },
                        {Random({2, 3})}));
}

TEST(IndexingGradients, ScatterAdd) {
  const Tensor index = Put<int64_t>({0, 3, 0, 1}, {2, 2});
  EXPECT_TRUE(
      GradCheck([&](Inputs v) { return ScatterAdd(v[0], 0, index, v[1]); },
                {Random({4, 2}), Random({2, 2})}));
}

TEST(IndexingGradients, EmbeddingSumsRepeats) {
  const Tensor index = Put<int64_t>({4, 0, 4, 1}, {2, 2});
  EXPECT_TRUE(GradCheck([&](Inputs v) { return Embedding(v[0], index); },
                        {Random({5, 3})}));
}

TEST(IndexingGradients, EmbeddingsPaddingGetsNone) {
  const Tensor index = Put<int64_t>({4, 0, 4, 1}, {2, 2});
  for (const int64_t padding : {int64_t{4}, int64_t{-1}}) {
    const Variable table(Random({5, 3}), true);
    const Variable y = Embedding(table, index, {.padding = padding});
    EXPECT_TRUE(ops::BitEqual(y.tensor(), Embedding(table, index).tensor()));
    y.Backward(Put(Tensor::Full(y.shape(), NAN, {.dtype = DType::kF64})));
    const auto grad = table.grad().ToVector<double>();
    for (size_t i = 0; i < grad.size(); ++i) {
      EXPECT_EQ(std::isnan(grad[i]), i < 6) << i;  // rows 0 and 1
      if (i >= 6) {
        EXPECT_EQ(grad[i], 0) << i;
      }
    }
  }
  EXPECT_THROW(Embedding(Random({5, 3}), index, {.padding = 5}), Error);
  EXPECT_THROW(Embedding(Random({5, 3}), index, {.padding = -6}), Error);
}

// The gradient of a sum of `uses` of a table of 5 rows.
Gradient GradientOf(const std::function<Variable(const Variable&)>& uses,
                    const Variable& table) {
  Sum(uses(table)).Backward();
  return table.gradient();
}

Variable Table() { return Variable(Put(Random({5, 3}).To(DType::kF32)), true); }

TEST(SparseEmbedding, HasTheRowsThatWereLookedUp) {
  const Tensor index = Put<int64_t>({3, 1, 3, 3}, {2, 2});
  const auto use = [&](bool sparse) {
    return [&, sparse](const Variable& table) {
      const Variable rows = Embedding(table, index, {.sparse = sparse});
      return rows * rows;
    };
  };
  const Variable table = Table(), twin(table.tensor(), true);
  const Gradient gradient = GradientOf(use(true), table);
  ASSERT_TRUE(gradient.is_rows());
  EXPECT_EQ(gradient.shape(), table.shape());
  EXPECT_LT(gradient.nbytes(), table.tensor().nbytes() * 2);
  EXPECT_TRUE(
      ops::AllClose(gradient.Dense(), GradientOf(use(false), twin).values()));
  // As they are wherever they are read.
  EXPECT_TRUE(ops::BitEqual(table.grad(), gradient.Dense()));
}

// With rows from elsewhere in the graph rows are summed; with a product's
// gradient, as of a tied head, all is dense.
TEST(SparseEmbedding, AddsUpWithOtherGradientsOfItsTable) {
  const Tensor one = Put<int64_t>({3, 1}), other = Put<int64_t>({1, 4});
  const auto twice = [&](bool sparse) {
    return [&, sparse](const Variable& table) {
      return Embedding(table, one, {.sparse = sparse}) *
             Embedding(table, other, {.sparse = sparse});
    };
  };
  for (const bool tied : {false, true}) {
    const auto use = [&](bool sparse) {
      return [&, sparse](const Variable& table) {
        const Variable rows = twice(sparse)(table);
        return tied ? Sum(rows) + Sum(table * table) : Sum(rows);
      };
    };
    const Variable table = Table(), twin(table.tensor(), true);
    const Gradient gradient = GradientOf(use(true), table);
    EXPECT_EQ(gradient.is_rows(), !tied);
    EXPECT_TRUE(
        ops::AllClose(gradient.Dense(), GradientOf(use(false), twin).values()));
    // A second pass adds to what there is; one of another kind makes it
    // dense.
    GradientOf(use(true), table);
    EXPECT_TRUE(
        ops::AllClose(table.grad(), GradientOf(use(false), twin).values()));
    GradientOf(use(false), table);
    EXPECT_FALSE(table.gradient().is_rows());
    EXPECT_TRUE(
        ops::AllClose(table.grad(), GradientOf(use(false), twin).values()));
  }
}

TEST(SparseEmbedding, GivesThePaddingNothing) {
  const Tensor index = Put<int64_t>({3, 1, 3, 0}, {2, 2});
  const auto use = [&](bool sparse) {
    return [&, sparse](const Variable& table) {
      const Variable rows =
          Embedding(table, index, {.padding = 3, .sparse = sparse});
      return rows * rows;
    };
  };
  const Variable table = Table(), twin(table.tensor(), true);
  const Gradient gradient = GradientOf(use(true), table);
  EXPECT_TRUE(gradient.is_rows());
  EXPECT_TRUE(
      ops::BitEqual(gradient.Dense(), GradientOf(use(false), twin).values()));
}

TEST(SparseEmbedding, IsDenseForHooksForInputsAndForTablesThatWereMade) {
  const Tensor index = Put<int64_t>({3, 1});
  const Variable hooked = Table();
  Tensor seen;
  Variable(hooked).AddHook([&](const Tensor& gradient) {
    seen = gradient;
    return Tensor();
  });
  EXPECT_FALSE(GradientOf(
                   [&](const Variable& table) {
                     return Embedding(table, index, {.sparse = true});
                   },
                   hooked)
                   .is_rows());
  EXPECT_EQ(seen.shape(), hooked.shape());
  const Variable table = Table();
  EXPECT_EQ(Grad({Sum(Embedding(table, index, {.sparse = true}))}, {table})[0]
                .shape(),
            table.shape());
  EXPECT_FALSE(GradientOf(
                   [&](const Variable& leaf) {
                     return Embedding(leaf * leaf, index, {.sparse = true});
                   },
                   table)
                   .is_rows());
}

}  // namespace
}  // namespace baton::autograd
