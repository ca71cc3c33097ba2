// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/indexing.h"
#include "core/ops/optimizer.h"
#include "core/random.h"

namespace baton::dist {
namespace {

using ::testing::Each;

RowTableOptions Options(int64_t width, const ops::StepRule& rule) {
  return {.name = "words",
          .width = width,
          .start = RowStart::kUniform,
          .scale = 0.5,
          .seed = 7,
          .limit = 0,
          .rule = rule};
}

Tensor Keys(const std::vector<int64_t>& keys) { return Tensor::From(keys); }

Tensor Read(const RowTable& table, const Tensor& keys) {
  Tensor rows = Tensor::Empty({keys.numel(), table.width()});
  table.Read(keys, rows);
  return rows;
}

void Step(RowTable& table, const std::vector<RowGradients>& gradients,
          double scale) {
  table.Step({table.Prepare(gradients).get()}, scale);
}

void ExpectDenseSteps(const ops::StepRule& rule, int64_t limit, int64_t rows) {
  RowTable table(Options(9, rule), limit);
  const Tensor keys = Tensor::Empty({rows}, {.dtype = DType::kI64});
  for (int64_t i = 0; i < rows; ++i) keys.data<int64_t>()[i] = 7 * i - 3;
  const Tensor dense = Read(table, keys);
  std::vector<Tensor> state;
  for (const auto& slot : UsedSlots(rule)) {
    state.push_back(slot.name == nullptr
                        ? Tensor()
                        : Tensor::Full(dense.shape(), slot.initial));
  }
  Generator generator(2);
  for (int step = 1; step <= 3; ++step) {
    const Tensor gradients = RandNormal({rows, 9}, generator);
    Step(table, {{.table = 0, .keys = keys, .gradients = gradients}}, 0.5);
    ops::OptimizerStep(
        {{.targets = {{.value = dense,
                       .grad = gradients,
                       .state = state,
                       .step = step,
                       .scale = Tensor::Scalar(0.5, DType::kF64)}},
          .rule = rule}});
  }
  EXPECT_EQ(Read(table, keys).ToVector<float>(), dense.ToVector<float>())
      << rows;
  EXPECT_EQ(table.size(), rows);
}

TEST(RowTable, RowsBeginAsSeedAndKeySayWhereverTheyAre) {
  const RowTable one(Options(6, ops::SgdRule{}), 0);
  const RowTable other(Options(6, ops::SgdRule{}), 3);
  const Tensor rows = Read(one, Keys({5, -9, 1LL << 40}));
  EXPECT_EQ(rows.ToVector<float>(),
            Read(other, Keys({5, -9, 1LL << 40})).ToVector<float>());
  EXPECT_EQ(Read(one, Keys({-9})).ToVector<float>(),
            rows.Slice(0, 1, 2).ToVector<float>());
  EXPECT_NE(rows.Select(0, 0).ToVector<float>(),
            rows.Select(0, 1).ToVector<float>());
  EXPECT_EQ(one.size(), 0);  // who only reads makes none
}

TEST(RowTable, BeginsUniformNormalOrZero) {
  std::vector<int64_t> keys(2000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  for (const RowStart start :
       {RowStart::kZero, RowStart::kUniform, RowStart::kNormal}) {
    RowTableOptions options = Options(5, ops::SgdRule{});
    options.start = start;
    const auto all = Read(RowTable(options, 0), Keys(keys)).ToVector<float>();
    double sum = 0, squares = 0;
    for (const float x : all) {
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    const auto count = static_cast<double>(all.size());
    const double variance = start == RowStart::kZero      ? 0
                            : start == RowStart::kUniform ? 0.25 / 3
                                                          : 0.25;
    EXPECT_NEAR(sum / count, 0, 0.02);
    EXPECT_NEAR(squares / count, variance, 0.02);
  }
}

// Compares with dense steps of all rows. Rows are stepped several at a time; a
// bounded table steps those of a push in one run.
TEST(RowTable, StepsTheTouchedRowsByTheRule) {
  for (const ops::StepRule& rule :
       {ops::StepRule(ops::SgdRule{.lr = 0.1}),
        ops::StepRule(ops::SgdRule{.lr = 0.1, .momentum = 0.9}),
        ops::StepRule(ops::AdagradRule{.lr = 0.1}),
        ops::StepRule(ops::AdamRule{.lr = 0.1, .amsgrad = true})}) {
    for (const int64_t limit : {0, 1000})
      for (const int64_t rows : {1, 3, 7, 8, 9, 16, 17, 24, 25, 300})
        ExpectDenseSteps(rule, limit, rows);
  }
}

TEST(RowTable, AddsUpWhatIsGivenForOneKey) {
  RowTableOptions options = Options(2, ops::AdagradRule{.lr = 1});
  options.start = RowStart::kZero;
  RowTable twice(options, 0), once(options, 0);
  Step(twice,
       {{.table = 0,
         .keys = Keys({4, 5, 4}),
         .gradients = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2})},
        {.table = 0,
         .keys = Keys({4}),
         .gradients = Tensor::From<float>({1, 1}, {1, 2})}},
       1);
  Step(once,
       {{.table = 0,
         .keys = Keys({5, 4}),
         .gradients = Tensor::From<float>({3, 4, 7, 9}, {2, 2})}},
       1);
  EXPECT_EQ(Read(twice, Keys({4, 5})).ToVector<float>(),
            Read(once, Keys({4, 5})).ToVector<float>());
}

// As trainers' pushes are that come at the same time: rows are made, or
// forgotten, between a push's preparation and its step.
TEST(RowTable, StepsByWhatWasPreparedBeforeOtherSteps) {
  const std::vector<RowGradients> first = {
      {.table = 0,
       .keys = Keys({1, 2, 2, 9}),
       .gradients = Tensor::Full({4, 3}, 0.5)}};
  const std::vector<RowGradients> second = {
      {.table = 0,
       .keys = Keys({2, 3, 9, 3, 8}),
       .gradients = Tensor::Full({5, 3}, 0.25)}};
  const RowTableOptions options = Options(3, ops::AdagradRule{.lr = 0.1});
  for (const int64_t limit : {0, 3}) {
    RowTable in_turn(options, limit), beside(options, limit);
    for (RowTable* table : {&in_turn, &beside}) Step(*table, first, 1);
    Step(in_turn, first, 1);
    Step(in_turn, second, 1);
    Step(in_turn, second, 1);
    const auto one = beside.Prepare(first), other = beside.Prepare(second),
               another = beside.Prepare(second);
    beside.Step({one.get(), other.get()}, 1);
    beside.Step({another.get()}, 1);
    EXPECT_EQ(beside.size(), in_turn.size());
    for (const int64_t key : {1, 2, 3, 8, 9}) {
      EXPECT_EQ(beside.Has(key), in_turn.Has(key)) << key;
      EXPECT_EQ(Read(beside, Keys({key})).ToVector<float>(),
                Read(in_turn, Keys({key})).ToVector<float>())
          << key;
    }
  }
}

TEST(RowTable, ForgetsTheRowsThatWereUsedLeastRecently) {
  RowTableOptions options = Options(3, ops::SgdRule{.lr = 1});
  RowTable table(options, 2);
  const auto push = [&](int64_t key) {
    Step(table,
         {{.table = 0,
           .keys = Keys({key}),
           .gradients = Tensor::Full({1, 3}, 10)}},
         1);
  };
  push(1);
  push(2);
  table.Touch(Keys({1, 77}));
  push(3);  // 2 goes
  EXPECT_EQ(table.size(), 2);
  EXPECT_TRUE(table.Has(1));
  EXPECT_FALSE(table.Has(2));
  EXPECT_THAT(Read(table, Keys({1})).ToVector<float>(),
              Each(::testing::Lt(-9)));
  EXPECT_THAT(Read(table, Keys({2})).ToVector<float>(),
              Each(::testing::Gt(-1)));  // as it began
  for (int64_t key = 10; key < 5000; ++key) push(key);
  EXPECT_EQ(table.size(), 2);
  EXPECT_TRUE(table.Has(4999));
  EXPECT_TRUE(table.Has(4998));
}

TEST(RowTable, ATableMadeOfAnImageGoesOnAsTheFirstOne) {
  const RowTableOptions options = Options(3, ops::AdamRule{.lr = 0.1});
  for (const int64_t limit : {0, 3}) {
    RowTable one(options, limit);
    const auto step = [](RowTable& table, const std::vector<int64_t>& keys) {
      const auto count = static_cast<int64_t>(keys.size());
      Step(table,
           {{.table = 0,
             .keys = Keys(keys),
             .gradients = Tensor::Full({count, 3}, 2)}},
           1);
    };
    step(one, {1, 2, 3});
    step(one, {2});
    one.Touch(Keys({1}));
    RowTable other(options, limit, one.Image());
    EXPECT_EQ(other.size(), one.size());
    step(one, {2, 4});  // where there is a limit 3 is forgotten
    step(other, {2, 4});
    EXPECT_EQ(other.Has(3), limit == 0);
    const Tensor keys = Keys({1, 2, 3, 4});
    EXPECT_EQ(Read(other, keys).ToVector<float>(),
              Read(one, keys).ToVector<float>());
  }
}

}  // namespace
}  // namespace baton::dist
