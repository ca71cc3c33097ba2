// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/optimizer.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::Put;
using test::TestDevice;
using ::testing::HasSubstr;

Tensor RandomOf(const Shape& shape) {
  static Generator generator(11);
  return Put(RandNormal(shape, generator));
}

// The rows that there are, by number; each may be there once.
std::map<int64_t, std::vector<float>> Listed(const Rows& rows) {
  std::map<int64_t, std::vector<float>> all;
  const auto index = rows.index.ToVector<int64_t>();
  for (size_t i = 0; i < index.size(); ++i) {
    const std::vector<float> values =
        rows.values.Select(0, static_cast<int64_t>(i)).ToVector<float>();
    if (index[i] < 0) {
      EXPECT_EQ(values, std::vector<float>(values.size(), 0.0f));
    } else {
      EXPECT_TRUE(all.emplace(index[i], values).second) << index[i];
    }
  }
  return all;
}

TEST(Rows, AreThereOnceWhenCoalesced) {
  const Rows rows =
      Coalesce({Put<int64_t>({4, 1, 4, 0, 4}),
                Put<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2})},
               6);
  EXPECT_EQ(Listed(rows), (std::map<int64_t, std::vector<float>>{
                              {0, {7, 8}}, {1, {3, 4}}, {4, {15, 18}}}));
  if (TestDevice().is_cpu()) {
    EXPECT_EQ(rows.index.ToVector<int64_t>(), (std::vector<int64_t>{0, 1, 4}));
  }
  // What is coalesced stays as it is, with what stands for none.
  EXPECT_EQ(Listed(Coalesce({Put<int64_t>({3, -1, 5}),
                             Put<float>({1, 2, 0, 0, 3, 4}, {3, 2})},
                            6)),
            (std::map<int64_t, std::vector<float>>{{3, {1, 2}}, {5, {3, 4}}}));
  EXPECT_TRUE(
      Listed(Coalesce({Put<int64_t>({}), Put<float>({}, {0, 2})}, 6)).empty());
}

// Thousands of entries, some rows very often.
TEST(Rows, SumToWhatTheDenseGradientIs) {
  Generator generator(5);
  const Tensor index = Put(Cat(
      {RandInt(0, 700, {3000}, generator), RandInt(0, 3, {2000}, generator)},
      0));
  const Tensor values = RandomOf({5000, 33});
  const Rows rows = Coalesce({index, values}, 700);
  const Tensor dense = EmbeddingBackward(values, index, 700);
  const Tensor table = Tensor::Zeros({700, 33}, {.device = TestDevice()});
  AddRowsInto(table, rows);
  EXPECT_TRUE(AllClose(table, dense, 1e-5, 1e-4));
  if (TestDevice().is_cpu()) {
    EXPECT_TRUE(BitEqual(table, dense));
  }
  AddRowsInto(table, rows);
  EXPECT_TRUE(AllClose(table, MulScalar(dense, 2), 1e-5, 1e-4));
}

TEST(Rows, ThatDoNotFitAreRefused) {
  const Tensor table = Tensor::Zeros({3, 2}, {.device = TestDevice()});
  const Tensor values = Tensor::Ones({2, 2}, {.device = TestDevice()});
  const auto add = [&](const Tensor& index, const Tensor& given) {
    return test::ErrorOf([&] { AddRowsInto(table, {index, given}); });
  };
  EXPECT_THAT(add(Put<int64_t>({0}), values), HasSubstr("are not of a table"));
  EXPECT_THAT(test::ErrorOf([&] {
                PutRowsInto(table, {Put<int64_t>({0}), values});
              }),
              HasSubstr("are not of a table"));
  EXPECT_THAT(add(Put<float>({0, 1}), values), HasSubstr("index"));
  EXPECT_THAT(add(Put<int64_t>({0, 1}), values.To(DType::kF64)),
              HasSubstr("f64"));
  if (TestDevice().is_cuda()) return;  // looks at no number
  EXPECT_THAT(add(Put<int64_t>({0, 3}), values),
              HasSubstr("row 3 (element 1) is outside [0, 3)"));
}

// Beside the dense step of a gradient with zeros elsewhere, which is the same
// where a rule does nothing for a gradient of 0.
TEST(Rows, AreSteppedAsByTheDenseGradientAndNoOthers) {
  for (const int64_t width : {1, 8, 13}) {
    const Rows rows{Put<int64_t>({6, -1, 2}), RandomOf({3, width})};
    const Tensor start = RandomOf({9, width});
    const Tensor dense = Tensor::Zeros({9, width}, {.device = TestDevice()});
    AddRowsInto(dense, rows);
    for (const StepRule& rule :
         {StepRule(SgdRule{.lr = 0.1}), StepRule(AdagradRule{.lr = 0.1})}) {
      const Tensor one = start.Clone(), other = start.Clone();
      const auto state = [&] {
        return std::vector<Tensor>{Tensor::ZerosLike(start)};
      };
      const std::vector<Tensor> of_one = state(), of_other = state();
      for (int64_t step = 1; step < 4; ++step) {
        OptimizerStep({{{{.value = one,
                          .grad = rows.values,
                          .state = of_one,
                          .step = step,
                          .rows = rows.index}},
                        rule}},
                      0.8);
        OptimizerStep({{{{.value = other,
                          .grad = dense,
                          .state = of_other,
                          .step = step}},
                        rule}},
                      0.8);
      }
      EXPECT_TRUE(BitEqual(one, other));
      EXPECT_TRUE(BitEqual(of_one[0], of_other[0]));
    }
  }
}

// By rules that would change the other rows, too.
TEST(Rows, ApartAreSteppedAsATableOfTheirOwn) {
  const Tensor index = Put<int64_t>({6, 0, 2});
  for (const StepRule& rule :
       {StepRule(SgdRule{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}),
        StepRule(AdamRule{.lr = 0.1})}) {
    const Tensor table = RandomOf({9, 5}), before = table.Clone();
    const Tensor own = Embedding(table, index);
    const auto zeros = [](const Tensor& like) {
      return std::vector<Tensor>{Tensor::ZerosLike(like),
                                 Tensor::ZerosLike(like), Tensor()};
    };
    const std::vector<Tensor> state = zeros(table), own_state = zeros(own);
    for (int64_t step = 1; step < 4; ++step) {
      const Tensor grad = RandomOf({3, 5});
      OptimizerStep({{{{.value = table,
                        .grad = grad,
                        .state = state,
                        .step = step,
                        .rows = index,
                        .rows_apart = true}},
                      rule}});
      OptimizerStep(
          {{{{.value = own, .grad = grad, .state = own_state, .step = step}},
            rule}});
    }
    EXPECT_TRUE(BitEqual(Embedding(table, index), own));
    EXPECT_TRUE(BitEqual(Embedding(state[0], index), own_state[0]));
    EXPECT_TRUE(BitEqual(table.Slice(0, 3, 6), before.Slice(0, 3, 6)));
  }
}

TEST(Rows, ArePutInTheirPlaces) {
  for (const int64_t width : {1, 4, 6, 33}) {
    const Tensor table = RandomOf({7, width}), before = table.Clone();
    const Tensor values = RandomOf({3, width});
    PutRowsInto(table, {Put<int64_t>({5, -1, 0}), values});
    EXPECT_TRUE(BitEqual(table.Select(0, 5), values.Select(0, 0)));
    EXPECT_TRUE(BitEqual(table.Select(0, 0), values.Select(0, 2)));
    EXPECT_TRUE(BitEqual(table.Slice(0, 1, 5), before.Slice(0, 1, 5)));
    EXPECT_TRUE(BitEqual(table.Select(0, 6), before.Select(0, 6)));
    PutRowsInto(table, {Put<int64_t>({}), Put<float>({}, {0, width})});
  }
}

TEST(Rows, OfALoweredTableAreRoundedAlone) {
  const Tensor master = RandomOf({5, 6});
  const Tensor lowered = master.To(DType::kBF16);
  const Tensor before = lowered.Clone();
  OptimizerStep({{{{.value = master,
                    .grad = Tensor::Ones({1, 6}, {.dtype = DType::kBF16,
                                                  .device = TestDevice()}),
                    .rows = Put<int64_t>({3}),
                    .lowered = lowered}},
                  SgdRule{.lr = 0.5}}});
  EXPECT_TRUE(
      BitEqual(lowered.Select(0, 3), master.Select(0, 3).To(DType::kBF16)));
  EXPECT_FALSE(BitEqual(lowered.Select(0, 3), before.Select(0, 3)));
  EXPECT_TRUE(BitEqual(lowered.Slice(0, 0, 3), before.Slice(0, 0, 3)));
  EXPECT_TRUE(BitEqual(lowered.Select(0, 4), before.Select(0, 4)));
}

TEST(Rows, AreRefusedByRulesThatMoveTheOthersToo) {
  const Tensor table = RandomOf({4, 2});
  const StepTarget target{.value = table,
                          .grad = RandomOf({1, 2}),
                          .state = {table.Clone(), table.Clone(), {}},
                          .rows = Put<int64_t>({1})};
  for (const StepRule& rule : {StepRule(SgdRule{.momentum = 0.9}),
                               StepRule(SgdRule{.weight_decay = 1}),
                               StepRule(AdagradRule{.weight_decay = 1}),
                               StepRule(AdamRule()), StepRule(RmsPropRule())}) {
    EXPECT_THAT(test::ErrorOf([&] {
                  OptimizerStep({{{target}, rule}});
                }),
                HasSubstr("take SparseAdam"));
  }
  OptimizerStep({{{target}, SparseAdamRule()}});
}

}  // namespace
}  // namespace baton::ops
