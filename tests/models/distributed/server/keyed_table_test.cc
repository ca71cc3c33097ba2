// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/optimizer.h"
#include "core/random.h"
#include "models/distributed/server/device_table.h"
#include "models/distributed/server/row_table.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using test::Put;
using test::TestDevice;
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

Tensor Read(const ShardTable& table, const Tensor& keys, int64_t width) {
  const Tensor rows =
      Tensor::Empty({keys.numel(), width}, {.device = table.device()});
  table.Read(keys, rows);
  return rows;
}

void Step(ShardTable& table, const std::vector<RowGradients>& gradients,
          double scale) {
  table.Step({table.Prepare(gradients).get()}, scale);
}

int64_t Size(const ShardTable& table) { return table.Image().keys.numel(); }

bool Has(const ShardTable& table, int64_t key) {
  const auto keys = table.Image().keys.ToVector<int64_t>();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

enum class Kind : uint8_t { kInHostMemory, kOnDevice };

// What holds for tables with any keys, wherever their rows lie.
class KeyedTable : public ::testing::TestWithParam<Kind> {
 protected:
  static std::unique_ptr<ShardTable> Make(const RowTableOptions& options,
                                          int64_t limit,
                                          const RowTableImage& image = {}) {
    if (GetParam() == Kind::kInHostMemory)
      return std::make_unique<RowTable>(options, limit, image);
    return std::make_unique<DeviceTable>(options, limit, TestDevice(), image);
  }
  static void ExpectDenseSteps(const ops::StepRule& rule, int64_t limit,
                               int64_t rows);
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, KeyedTable, ::testing::Values(Kind::kInHostMemory, Kind::kOnDevice),
    [](const auto& kind) -> std::string {
      return kind.param == Kind::kOnDevice ? "OnDevice" : "InHostMemory";
    });

void KeyedTable::ExpectDenseSteps(const ops::StepRule& rule, int64_t limit,
                                  int64_t rows) {
  const auto table = Make(Options(9, rule), limit);
  const Device device = table->device();
  const Tensor keys = Tensor::Empty({rows}, {.dtype = DType::kI64});
  for (int64_t i = 0; i < rows; ++i) keys.data<int64_t>()[i] = 7 * i - 3;
  const Tensor dense = Read(*table, keys, 9);
  std::vector<Tensor> state;
  for (const auto& slot : UsedSlots(rule)) {
    state.push_back(
        slot.name == nullptr
            ? Tensor()
            : Tensor::Full(dense.shape(), slot.initial, {.device = device}));
  }
  Generator generator(2);
  for (int step = 1; step <= 3; ++step) {
    const Tensor gradients = RandNormal({rows, 9}, generator);
    Step(*table, {{.table = 0, .keys = keys, .gradients = gradients}}, 0.5);
    ops::OptimizerStep(
        {{.targets = {{.value = dense,
                       .grad = gradients.To(device),
                       .state = state,
                       .step = step,
                       .scale = Tensor::Scalar(0.5, DType::kF64).To(device)}},
          .rule = rule}});
  }
  EXPECT_EQ(Read(*table, keys, 9).ToVector<float>(), dense.ToVector<float>())
      << rows;
  EXPECT_EQ(Size(*table), rows);
}

TEST_P(KeyedTable, RowsBeginAsSeedAndKeySayWhereverTheyAre) {
  const auto one = Make(Options(6, ops::SgdRule{}), 0);
  const RowTable other(Options(6, ops::SgdRule{}), 3);
  const Tensor rows = Read(*one, Keys({5, -9, 1LL << 40}), 6);
  EXPECT_EQ(rows.ToVector<float>(),
            Read(other, Keys({5, -9, 1LL << 40}), 6).ToVector<float>());
  EXPECT_EQ(Read(*one, Keys({-9}), 6).ToVector<float>(),
            rows.Slice(0, 1, 2).ToVector<float>());
  EXPECT_NE(rows.Select(0, 0).ToVector<float>(),
            rows.Select(0, 1).ToVector<float>());
  EXPECT_EQ(Size(*one), 0);  // who only reads makes none
}

TEST_P(KeyedTable, BeginsUniformNormalOrZero) {
  std::vector<int64_t> keys(2000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  for (const RowStart start :
       {RowStart::kZero, RowStart::kUniform, RowStart::kNormal}) {
    RowTableOptions options = Options(5, ops::SgdRule{});
    options.start = start;
    const auto all = Read(*Make(options, 0), Keys(keys), 5).ToVector<float>();
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
TEST_P(KeyedTable, StepsTheTouchedRowsByTheRule) {
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

TEST_P(KeyedTable, AddsUpWhatIsGivenForOneKey) {
  RowTableOptions options = Options(2, ops::AdagradRule{.lr = 1});
  options.start = RowStart::kZero;
  const auto twice = Make(options, 0), once = Make(options, 0);
  Step(*twice,
       {{.table = 0,
         .keys = Keys({4, 5, 4}),
         .gradients = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2})},
        {.table = 0,
         .keys = Keys({4}),
         .gradients = Tensor::From<float>({1, 1}, {1, 2})}},
       1);
  Step(*once,
       {{.table = 0,
         .keys = Keys({5, 4}),
         .gradients = Tensor::From<float>({3, 4, 7, 9}, {2, 2})}},
       1);
  EXPECT_EQ(Read(*twice, Keys({4, 5}), 2).ToVector<float>(),
            Read(*once, Keys({4, 5}), 2).ToVector<float>());
}

// As trainers' pushes are that come at the same time: rows are made, or
// forgotten, between a push's preparation and its step.
TEST_P(KeyedTable, StepsByWhatWasPreparedBeforeOtherSteps) {
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
    const auto in_turn = Make(options, limit), beside = Make(options, limit);
    for (ShardTable* table : {in_turn.get(), beside.get()})
      Step(*table, first, 1);
    Step(*in_turn, first, 1);
    Step(*in_turn, second, 1);
    Step(*in_turn, second, 1);
    const auto one = beside->Prepare(first), other = beside->Prepare(second),
               another = beside->Prepare(second);
    beside->Step({one.get(), other.get()}, 1);
    beside->Step({another.get()}, 1);
    EXPECT_EQ(Size(*beside), Size(*in_turn));
    for (const int64_t key : {1, 2, 3, 8, 9}) {
      EXPECT_EQ(Has(*beside, key), Has(*in_turn, key)) << key;
      EXPECT_EQ(Read(*beside, Keys({key}), 3).ToVector<float>(),
                Read(*in_turn, Keys({key}), 3).ToVector<float>())
          << key;
    }
  }
}

TEST_P(KeyedTable, StepsEachPushAtItsOwnRate) {
  for (const int64_t limit : {0, 3}) {
    const auto given = Make(Options(4, ops::AdagradRule{.lr = 0.2}), limit);
    std::vector<RowGradients> push = {
        {.keys = Keys({5, 7}), .gradients = Tensor::Full({2, 4}, 0.5)}};
    const auto first = given->Prepare(push);
    push[0].rate = 0.25;
    const auto later = given->Prepare(push);
    given->Step({first.get(), later.get()}, 1);

    const auto slow = Make(Options(4, ops::AdagradRule{.lr = 0.2}), limit);
    Step(*slow, push, 1);  // at a quarter of the rate, then as it is
    push[0].rate = 1;
    Step(*slow, push, 1);
    const Tensor start = Read(*Make(Options(4, {}), 0), Keys({5, 7}), 4);
    const auto moved = [&](const ShardTable& table) {
      return ops::Sub(start, Read(table, Keys({5, 7}), 4)).ToVector<float>();
    };
    // The step is lr * 1, and then lr / sqrt(2).
    EXPECT_THAT(moved(*given), Each(::testing::FloatNear(
                                   0.2F + 0.05F / std::sqrt(2.0F), 1e-5)));
    EXPECT_THAT(moved(*slow), Each(::testing::FloatNear(
                                  0.05F + 0.2F / std::sqrt(2.0F), 1e-5)));
  }
}

TEST_P(KeyedTable, ForgetsTheRowsThatWereUsedLeastRecently) {
  RowTableOptions options = Options(3, ops::SgdRule{.lr = 1});
  const auto table = Make(options, 2);
  const auto push = [&](int64_t key) {
    Step(*table,
         {{.table = 0,
           .keys = Keys({key}),
           .gradients = Tensor::Full({1, 3}, 10)}},
         1);
  };
  push(1);
  push(2);
  table->Touch(Keys({1, 77}));
  push(3);  // 2 goes
  EXPECT_EQ(Size(*table), 2);
  EXPECT_TRUE(Has(*table, 1));
  EXPECT_FALSE(Has(*table, 2));
  EXPECT_THAT(Read(*table, Keys({1}), 3).ToVector<float>(),
              Each(::testing::Lt(-9)));
  EXPECT_THAT(Read(*table, Keys({2}), 3).ToVector<float>(),
              Each(::testing::Gt(-1)));  // as it began
  for (int64_t key = 10; key < 5000; ++key) push(key);
  EXPECT_EQ(Size(*table), 2);
  EXPECT_TRUE(Has(*table, 4999));
  EXPECT_TRUE(Has(*table, 4998));
}

TEST_P(KeyedTable, ATableMadeOfAnImageGoesOnAsTheFirstOne) {
  const RowTableOptions options = Options(3, ops::AdamRule{.lr = 0.1});
  for (const int64_t limit : {0, 3}) {
    const auto one = Make(options, limit);
    const auto step = [](ShardTable& table, const std::vector<int64_t>& keys) {
      const auto count = static_cast<int64_t>(keys.size());
      Step(table,
           {{.table = 0,
             .keys = Keys(keys),
             .gradients = Tensor::Full({count, 3}, 2)}},
           1);
    };
    step(*one, {1, 2, 3});
    step(*one, {2});
    one->Touch(Keys({1}));
    const auto other = Make(options, limit, one->Image());
    EXPECT_EQ(Size(*other), Size(*one));
    step(*one, {2, 4});  // where there is a limit 3 is forgotten
    step(*other, {2, 4});
    EXPECT_EQ(Has(*other, 3), limit == 0);
    const Tensor keys = Keys({1, 2, 3, 4});
    EXPECT_EQ(Read(*other, keys, 3).ToVector<float>(),
              Read(*one, keys, 3).ToVector<float>());
  }
}

// Rows that are made, grow in number, are forgotten and reused, beside those of
// a table in host memory: with their bits where the arithmetic is the same.
TEST(DeviceTable, HasTheRowsOfATableInHostMemory) {
  constexpr int64_t kWidth = 6;
  for (const ops::StepRule& rule :
       {ops::StepRule(ops::SgdRule{.lr = 0.1, .momentum = 0.9}),
        ops::StepRule(
            ops::AdagradRule{.lr = 0.1, .initial_accumulator_value = 0.5}),
        ops::StepRule(ops::SparseAdamRule{.lr = 0.1})}) {
    for (const int64_t limit : {0, 700}) {
      RowTable in_host_memory(Options(kWidth, rule), limit);
      DeviceTable on_device(Options(kWidth, rule), limit, TestDevice());
      Generator generator(3);
      for (int step = 0; step < 12; ++step) {
        std::vector<RowGradients> gradients;
        for (const int64_t count : {400, 300}) {
          gradients.push_back(
              {.keys = Put(RandInt(-2000, 2000, {count}, generator)),
               .gradients = Put(RandNormal({count, kWidth}, generator))});
        }
        const Tensor used = RandInt(-2000, 2000, {50}, generator);
        for (ShardTable* table :
             std::vector<ShardTable*>{&in_host_memory, &on_device}) {
          Step(*table, gradients, 0.5);
          table->Touch(used);
        }
      }
      const RowTableImage one = in_host_memory.Image(),
                          other = on_device.Image();
      EXPECT_GT(one.keys.numel(), 600);
      EXPECT_EQ(one.steps, other.steps);
      EXPECT_EQ(one.keys.ToVector<int64_t>(), other.keys.ToVector<int64_t>());
      EXPECT_TRUE(ops::AllClose(one.records, other.records, 1e-5, 1e-5));
      if (TestDevice().is_cpu()) {
        EXPECT_TRUE(ops::BitEqual(one.records, other.records));
      }
    }
  }
}

TEST(ShardTable, LiesOnTheDeviceUnlessItIsToBeInHostMemory) {
  for (const int64_t rows : {0, 10}) {
    RowTableOptions options = Options(3, ops::SgdRule{});
    options.rows = rows;
    EXPECT_EQ(ShardTable::Make(options, 0, 1, TestDevice())->device(),
              TestDevice());
    options.in_host_memory = true;
    EXPECT_EQ(ShardTable::Make(options, 0, 1, TestDevice())->device(),
              Device::Cpu());
  }
}

}  // namespace
}  // namespace baton::dist
