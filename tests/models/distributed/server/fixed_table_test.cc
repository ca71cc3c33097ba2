// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/fixed_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/server/row_table.h"
#include "tests/models/distributed/server/server_cluster.h"

namespace baton::dist {
namespace {

using test::Put;
using test::TestDevice;
using testing::Fails;
using testing::IsOk;
using testing::ServerTest;

constexpr int64_t kRows = 11, kFixedWidth = 6;

RowTableOptions FixedOptions(const ops::StepRule& rule) {
  return {.name = "words",
          .width = kFixedWidth,
          .rows = kRows,
          .start = RowStart::kNormal,
          .scale = 0.5,
          .seed = 7,
          .limit = 0,
          .rule = rule};
}

Tensor FixedRowsOf(const ShardTable& table, const std::vector<int64_t>& keys) {
  Tensor rows = Tensor::Empty({static_cast<int64_t>(keys.size()), kFixedWidth},
                              {.device = table.device()});
  table.Read(Tensor::From(keys).To(table.device()), rows);
  return rows;
}

void StepFixed(ShardTable& table, const std::vector<RowGradients>& gradients,
               double scale) {
  table.Step({table.Prepare(gradients).get()}, scale);
}

void ExpectNear(const Tensor& a, const Tensor& b) {
  const auto one = a.ToVector<float>(), other = b.ToVector<float>();
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one[i], other[i], 1e-5) << i;
}

TEST(FixedTable, EachShardBeginsWithItsRowsOfTheTable) {
  const RowTable all(FixedOptions(ops::SgdRule{}), 0);
  const FixedTable first(FixedOptions(ops::SgdRule{}), 0, 2, TestDevice());
  const FixedTable second(FixedOptions(ops::SgdRule{}), 1, 2, TestDevice());
  EXPECT_EQ(first.device(), TestDevice());
  EXPECT_EQ(FixedRowsOf(first, {0, 5, 1}).ToVector<float>(),
            FixedRowsOf(all, {0, 10, 2}).ToVector<float>());
  EXPECT_EQ(FixedRowsOf(second, {0, 4}).ToVector<float>(),
            FixedRowsOf(all, {1, 9}).ToVector<float>());
}

// Rows that several gradients name, of several trainers, are stepped once.
TEST(FixedTable, IsSteppedAsATableInHostMemory) {
  for (const ops::StepRule& rule :
       {ops::StepRule(ops::SgdRule{.lr = 0.1}),
        ops::StepRule(ops::AdagradRule{.lr = 0.1}),
        ops::StepRule(ops::SparseAdamRule{.lr = 0.1})}) {
    FixedTable fixed(FixedOptions(rule), 0, 1, TestDevice());
    RowTable other(FixedOptions(rule), 0);
    Generator generator(3);
    for (const std::vector<int64_t>& keys :
         {std::vector<int64_t>{3, 10, 3}, {0, 3, 7}, {7, 7, 7}}) {
      const std::vector<RowGradients> gradients = {
          {.keys = Tensor::From(keys),
           .gradients = RandNormal({3, kFixedWidth}, generator)},
          {.keys = Tensor::From<int64_t>({3, 1}),
           .gradients = RandNormal({2, kFixedWidth}, generator)}};
      StepFixed(fixed, gradients, 0.5);
      StepFixed(other, gradients, 0.5);
    }
    std::vector<int64_t> all(kRows);
    std::iota(all.begin(), all.end(), 0);
    ExpectNear(FixedRowsOf(fixed, all), FixedRowsOf(other, all));
  }
}

TEST(FixedTable, StepsAtTheRateThatIsGiven) {
  FixedTable one(FixedOptions(ops::SgdRule{.lr = 0.2}), 0, 1, TestDevice());
  FixedTable other(FixedOptions(ops::SgdRule{.lr = 0.1}), 0, 1, TestDevice());
  const RowGradients gradients{.keys = Tensor::From<int64_t>({3, 9}),
                               .gradients = Tensor::Full({2, kFixedWidth}, 3),
                               .rate = 0.5};
  RowGradients at_own_rate = gradients;
  at_own_rate.rate = 1;
  StepFixed(one, {gradients}, 1);
  StepFixed(other, {at_own_rate}, 1);
  EXPECT_EQ(FixedRowsOf(one, {3, 9, 1}).ToVector<float>(),
            FixedRowsOf(other, {3, 9, 1}).ToVector<float>());
}

TEST(FixedTable, AnImageIsAWholeTable) {
  const RowTableOptions options = FixedOptions(ops::SparseAdamRule{.lr = 0.1});
  FixedTable one(options, 1, 3, TestDevice());
  const std::vector<RowGradients> gradients = {
      {.keys = Tensor::From<int64_t>({0, 2}),
       .gradients = Tensor::Full({2, kFixedWidth}, 3)}};
  StepFixed(one, gradients, 1);
  const RowTableImage image = one.Image();
  EXPECT_EQ(image.keys.ToVector<int64_t>(),
            std::vector<int64_t>({1, 4, 7, 10}));
  FixedTable other(options, 1, 3, TestDevice(), image);
  StepFixed(one, gradients, 1);
  StepFixed(other, gradients, 1);
  EXPECT_EQ(FixedRowsOf(one, {0, 1, 2, 3}).ToVector<float>(),
            FixedRowsOf(other, {0, 1, 2, 3}).ToVector<float>());
  EXPECT_THROW(FixedTable(options, 0, 3, TestDevice(), image), Error);
}

class FixedRows : public ServerTest {
 protected:
  void Start(const std::vector<std::string>& servers) {
    ServerOptions options;
    options.mode = Consistency::kAsynchronous;
    options.tables = {FixedOptions(ops::SgdRule{.lr = 1})};
    Make(options, {{"x", Tensor::Zeros({4})}}, servers);
  }
};

// A worker that has the servers' device is given the rows there, and pushes
// from there.
TEST_F(FixedRows, GoFromDeviceToDevice) {
  const RowTable as_they_begin(FixedOptions(ops::SgdRule{}), 0);
  for (const std::vector<std::string>& servers :
       {std::vector<std::string>{"bob"}, {"bob", "carol"}}) {
    Start(servers);
    for (const char* const worker : {"bob", "dave"}) {
      const auto client = Join(std::string(worker) == "bob" ? 0 : 1, worker);
      const Tensor keys = Put<int64_t>({9, 0, 4, 9});
      const auto before = client->PullRows(0, keys).Await();
      ASSERT_THAT(before, IsOk());
      EXPECT_EQ(before->device(), TestDevice());
      const auto pulled =
          client
              ->Do({.row_gradients = {{.keys = keys,
                                       .gradients = Put(Tensor::Full(
                                           {4, kFixedWidth}, -1))}},
                    .rows = {{.keys = keys}}})
              .Await();
      ASSERT_THAT(pulled, IsOk());
      const Tensor added =
          Tensor::From<float>({2, 1, 1, 2}, {4, 1}).Expand({4, kFixedWidth});
      ExpectNear(pulled->rows[0], ops::Add(before->To(Device::Cpu()), added));
      if (std::string(worker) == "bob")
        ExpectNear(*before, FixedRowsOf(as_they_begin, {9, 0, 4, 9}));
    }
  }
}

TEST_F(FixedRows, OthersThanThoseThereAreRefusedWhereTheyAreSeen) {
  Start({"bob", "carol"});
  const auto client = Join(0);
  for (const int64_t row : {int64_t{-1}, kRows}) {
    const Tensor keys = Tensor::From<int64_t>({0, row});
    EXPECT_THAT(client->PullRows(0, keys).Await(),
                Fails(absl::StatusCode::kInvalidArgument, "none of the 11"));
    EXPECT_THAT(client
                    ->Do({.row_gradients = {{.keys = keys,
                                             .gradients = Tensor::Zeros(
                                                 {2, kFixedWidth})}}})
                    .Await(),
                Fails(absl::StatusCode::kInvalidArgument, "none of the 11"));
  }
  for (const double rate : {-1.0, std::nan("")}) {
    EXPECT_THAT(client
                    ->Do({.row_gradients = {{.keys = Tensor::From<int64_t>({0}),
                                             .gradients = Tensor::Zeros(
                                                 {1, kFixedWidth}),
                                             .rate = rate}}})
                    .Await(),
                Fails(absl::StatusCode::kInvalidArgument, "rate of table"));
  }
  ServerOptions options;
  options.tables = {FixedOptions(ops::AdamRule{})};
  EXPECT_THAT(Check(options),
              Fails(absl::StatusCode::kInvalidArgument, "fixed number"));
  options.tables = {FixedOptions(ops::SgdRule{})};
  options.tables[0].limit = 5;
  EXPECT_THAT(Check(options),
              Fails(absl::StatusCode::kInvalidArgument, "fixed number"));
}

// On a GPU, where nobody looks at the numbers.
TEST_F(FixedRows, OfAGpuThatAreNotThereAreNaNAndNotStepped) {
  Start({"bob"});
  const auto client = Join(0, "bob");
  const Tensor keys = Put<int64_t>({kRows, 2});
  if (TestDevice().is_cpu()) {
    EXPECT_THAT(client->PullRows(0, keys).Await(),
                Fails(absl::StatusCode::kInvalidArgument, "row 11"));
    return;
  }
  ASSERT_THAT(client
                  ->Do({.row_gradients = {{.keys = keys,
                                           .gradients = Put(Tensor::Full(
                                               {2, kFixedWidth}, -1))}}})
                  .Await(),
              IsOk());
  const auto rows = client->PullRows(0, keys).Await();
  ASSERT_THAT(rows, IsOk());
  EXPECT_TRUE(std::isnan(rows->Select(0, 0).ToVector<float>()[0]));
  const RowTable as_they_begin(FixedOptions(ops::SgdRule{}), 0);
  ExpectNear(ops::AddScalar(FixedRowsOf(as_they_begin, {2}), 1),
             rows->Slice(0, 1, 2));
}

}  // namespace
}  // namespace baton::dist
