// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/row_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAreArray;

constexpr int64_t kWidth = 3;
constexpr int kShards = 3;

ServerOptions RoutesOptions(int64_t rows = 0) {
  ServerOptions options;
  options.tables = {{.name = "words", .width = kWidth, .rows = rows}};
  return options;
}

// A row that tells its key and its shard.
void WriteRow(int64_t key, int shard, float* row) {
  row[0] = static_cast<float>(key);
  row[1] = static_cast<float>(shard);
  row[2] = 7;
}

Tensor RowsOf(const Tensor& keys, int shard) {
  const Tensor rows = Tensor::Empty({keys.numel(), kWidth});
  for (int64_t i = 0; i < keys.numel(); ++i)
    WriteRow(keys.data<int64_t>()[i], shard, rows.data<float>() + i * kWidth);
  return rows;
}

// What the given keys of a table should give.
std::vector<float> ExpectedOf(const RowTableOptions& table,
                              const Tensor& keys) {
  std::vector<float> expected(static_cast<size_t>(keys.numel() * kWidth));
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const int64_t key = keys.data<int64_t>()[i];
    WriteRow(table.rows > 0 ? key / kShards : key,
             ShardOfRow(table, key, kShards), expected.data() + i * kWidth);
  }
  return expected;
}

class RowRoutesTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(RowRoutesTest, PulledRowsAreInTheRequestedOrder) {
  const ServerOptions options = RoutesOptions(GetParam());
  const Tensor keys =
      Tensor::From<int64_t>({11, 5, 40, 2, 11, 8, 0, 77, 5, 23, 31, 4});
  const auto routes = std::make_shared<const RowRoutes>(
      options, kShards, std::vector<RowGradients>{},
      std::vector<RowKeys>{{.table = 0, .keys = keys}});
  JoinedRows joined(routes);
  std::vector<std::thread> answers;
  for (int shard = 0; shard < kShards; ++shard) {
    answers.emplace_back([&joined, &routes, shard] {
      joined.Take(shard, {RowsOf(routes->keys(shard)[0].keys, shard)});
    });
  }
  for (std::thread& answer : answers) answer.join();
  const std::vector<Tensor> all = joined.All();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0].ToVector<float>(),
              ElementsAreArray(ExpectedOf(options.tables[0], keys)));
}

TEST_P(RowRoutesTest, RowsOfShardsOnOtherDevicesAreJoined) {
  const ServerOptions options = RoutesOptions(GetParam());
  const Tensor keys = Tensor::From<int64_t>({11, 5, 40, 2, 11, 8, 0, 77});
  for (int on_device = 0; on_device <= kShards; ++on_device) {
    const auto routes = std::make_shared<const RowRoutes>(
        options, kShards, std::vector<RowGradients>{},
        std::vector<RowKeys>{{.table = 0, .keys = keys}});
    JoinedRows joined(routes);
    for (int shard = 0; shard < kShards; ++shard) {
      const Tensor rows = RowsOf(routes->keys(shard)[0].keys, shard);
      joined.Take(shard,
                  {shard < on_device ? rows.To(test::TestDevice()) : rows});
    }
    EXPECT_THAT(joined.All()[0].ToVector<float>(),
                ElementsAreArray(ExpectedOf(options.tables[0], keys)))
        << on_device;
  }
}

TEST_P(RowRoutesTest, GradientsGoToTheShardsOfTheirRows) {
  const ServerOptions options = RoutesOptions(GetParam());
  const Tensor keys = Tensor::From<int64_t>({11, 5, 40, 2, 11, 8});
  const Tensor gradients = Tensor::Empty({keys.numel(), kWidth});
  for (int64_t i = 0; i < keys.numel(); ++i) {
    const int64_t key = keys.data<int64_t>()[i];
    const int shard = ShardOfRow(options.tables[0], key, kShards);
    WriteRow(GetParam() > 0 ? key / kShards : key, shard,
             gradients.data<float>() + i * kWidth);
  }
  const RowRoutes routes(options, kShards,
                         {{.table = 0, .keys = keys, .gradients = gradients}},
                         {});
  int64_t found = 0;
  for (int shard = 0; shard < kShards; ++shard) {
    for (const RowGradients& of_shard :
         routes.Gradients(shard, &Tensor::Empty)) {
      EXPECT_EQ(of_shard.gradients.ToVector<float>(),
                RowsOf(of_shard.keys, shard).ToVector<float>());
      found += of_shard.keys.numel();
    }
  }
  EXPECT_EQ(found, keys.numel());
}

INSTANTIATE_TEST_SUITE_P(TablesOfAnySizeAndOfAFixedOne, RowRoutesTest,
                         ::testing::Values(0, 100));

TEST(RowRoutes, RowsOfOneShardAreNotCopied) {
  const auto routes = std::make_shared<const RowRoutes>(
      RoutesOptions(/*rows=*/100), kShards, std::vector<RowGradients>{},
      std::vector<RowKeys>{
          {.table = 0, .keys = Tensor::From<int64_t>({4, 1, 31})}});
  JoinedRows joined(routes);
  const Tensor rows = RowsOf(routes->keys(1)[0].keys, 1);
  joined.Take(0, {Tensor::Empty({0, kWidth})});
  joined.Take(1, {rows});
  joined.Take(2, {Tensor::Empty({0, kWidth})});
  EXPECT_EQ(joined.All()[0].data<float>(), rows.data<float>());
}

TEST(RowRoutes, NoKeysGiveNoRows) {
  const auto routes = std::make_shared<const RowRoutes>(
      RoutesOptions(), kShards, std::vector<RowGradients>{},
      std::vector<RowKeys>{{.table = 0, .keys = Tensor::From<int64_t>({})}});
  JoinedRows joined(routes);
  for (int shard = 0; shard < kShards; ++shard)
    joined.Take(shard, {Tensor::Empty({0, kWidth})});
  EXPECT_EQ(joined.All()[0].shape(), Shape({0, kWidth}));
}

}  // namespace
}  // namespace baton::dist
