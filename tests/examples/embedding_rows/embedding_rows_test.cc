// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "autograd/distributed/context.h"
#include "examples/embedding_rows/experiment.h"
#include "examples/embedding_rows/zipf.h"
#include "tests/support/error_of.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::examples {
namespace {

using testing::IsOk;

std::vector<double> SharesOf(int64_t count, double skew) {
  constexpr int64_t kDrawn = 200'000;
  Zipf zipf(count, skew, 3);
  std::map<int64_t, int64_t> times;
  for (const int64_t number : zipf.Draw(kDrawn).ToVector<int64_t>()) {
    EXPECT_GE(number, 0);
    EXPECT_LT(number, count);
    ++times[number];
  }
  std::vector<double> shares;
  for (const auto& [number, of_it] : times)
    shares.push_back(static_cast<double>(of_it) / kDrawn);
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

class ZipfBySkew : public ::testing::TestWithParam<double> {};

TEST_P(ZipfBySkew, DrawsEachRankWithItsProbability) {
  constexpr int64_t kCount = 50;
  double all = 0;
  for (int64_t rank = 1; rank <= kCount; ++rank)
    all += std::pow(static_cast<double>(rank), -GetParam());
  const std::vector<double> shares = SharesOf(kCount, GetParam());
  ASSERT_EQ(shares.size(), static_cast<size_t>(kCount));
  for (size_t i = 0; i < shares.size(); ++i) {
    const double wanted =
        std::pow(static_cast<double>(i + 1), -GetParam()) / all;
    // Five deviations.
    EXPECT_NEAR(shares[i], wanted, 5 * std::sqrt(wanted / 200'000)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Skews, ZipfBySkew,
                         ::testing::Values(0.0, 0.8, 1.0, 1.2),
                         [](const auto& info) {
                           return std::to_string(
                               static_cast<int>(10 * info.param));
                         });

TEST(Zipf, RefusesWhatItCannotDrawFrom) {
  EXPECT_THAT(test::ErrorOf([] { Zipf(0, 1, 1); }),
              ::testing::HasSubstr("[zipf]"));
  EXPECT_THAT(test::ErrorOf([] { Zipf(1, -1, 1); }),
              ::testing::HasSubstr("skew"));
}

class EmbeddingRows : public ::testing::TestWithParam<int> {
 protected:
  static testing::ClusterOptions Workers() {
    testing::ClusterOptions options;
    options.names = {"alice", "bob", "carol", "dave", "erin"};
    options.fill = [](rpc::Registry& registry) {
      dist::Register(registry);
      RegisterRowClients(registry);
    };
    options.on_start = dist::Attach;
    return options;
  }
  RowTableTask Task() const {
    RowTableTask task;
    task.servers = {"bob"};
    task.clients = {"dave", "erin"};
    if (GetParam() == 2) task.servers.emplace_back("carol");
    task.rows = 5000;
    task.table = {.name = "rows",
                  .width = 8,
                  .start = dist::RowStart::kUniform,
                  .scale = 1,
                  .rule = ops::SgdRule{.lr = 1}};
    return task;
  }
};

TEST_P(EmbeddingRows, AreReadAndUpdatedByAllClients) {
  testing::LocalCluster cluster(Workers());
  const RowTableTask task = Task();
  const auto experiment = RowExperiment::Make(cluster["alice"], task);
  ASSERT_THAT(experiment, IsOk());
  ASSERT_THAT((*experiment)->Fill(), IsOk());
  for (const RowLoad load :
       {RowLoad::kRead, RowLoad::kUpdate, RowLoad::kTrain}) {
    const RowOrder order{.load = load,
                         .rows = task.rows,
                         .skew = 1.05,
                         .batch = 100,
                         .batches = 20};
    const auto figures = (*experiment)->Run(order, 2);
    ASSERT_THAT(figures, IsOk());
    EXPECT_EQ(figures->rows, 2 * 20 * 100);
    EXPECT_GT(figures->seconds, 0);
    EXPECT_EQ(figures->latencies_us.size(), 2u * 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, EmbeddingRows, ::testing::Values(1, 2));

}  // namespace
}  // namespace baton::examples
