// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/embedding_rows/experiment.h"
#include "examples/embedding_rows/row_check.h"
#include "examples/embedding_rows/zipf.h"
#include "models/distributed/stock.h"
#include "tests/support/error_of.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/programs/loose_workers.h"

namespace baton::examples {
namespace {

using testing::Fails;
using ::testing::HasSubstr;
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
      dist::RegisterStock(registry);
      RegisterRowClients(registry);
    };
    options.on_start = dist::AttachStock;
    return options;
  }
  RowTableTask Task() const {
    RowTableTask task;
    task.servers = {"bob"};
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

TEST_P(EmbeddingRows, OfAFixedSizeAreUsedBesideTheirServersAsWell) {
  testing::LocalCluster cluster(Workers());
  RowTableTask task = Task();
  task.table.rows = task.rows;
  const auto experiment = RowExperiment::Make(cluster["alice"], task);
  ASSERT_THAT(experiment, IsOk());
  for (const RowLoad load : {RowLoad::kRead, RowLoad::kUpdate, RowLoad::kTrain,
                             RowLoad::kGather, RowLoad::kCopy}) {
    const RowOrder order{.load = load,
                         .rows = task.rows,
                         .batch = 100,
                         .ahead = 3,
                         .batches = 20};
    const auto beside = (*experiment)->RunAtServers(order);
    ASSERT_THAT(beside, IsOk());
    EXPECT_EQ(beside->clients, GetParam());
    const auto figures = (*experiment)->Run(order, 2);
    ASSERT_THAT(figures, IsOk());
    EXPECT_EQ(figures->rows, 2 * 20 * 100);
    EXPECT_EQ(figures->latencies_us.size(), 2u * 20u);
  }
}

TEST_P(EmbeddingRows, AreComparedWithTheUpdatesThatClientsWereToldOf) {
  testing::LocalCluster cluster(Workers());
  const RowTableTask task = Task();
  const auto experiment = RowExperiment::Make(cluster["alice"], task);
  ASSERT_THAT(experiment, IsOk());
  const RowOrder order{.load = RowLoad::kUpdate,
                       .rows = task.rows,
                       .skew = 1.05,
                       .batch = 100,
                       .batches = 20};
  ASSERT_THAT((*experiment)->CountUpdates(), IsOk());
  ASSERT_THAT((*experiment)->Run(order, 2), IsOk());
  const auto updates = (*experiment)->CompareRows();
  ASSERT_THAT(updates, IsOk());
  EXPECT_EQ(*updates, 2 * (20 + 3) * 100);
  // Begun anew, it knows of none.
  const auto check =
      RowCheck::Make(cluster["alice"], (*experiment)->directory(), task.rows);
  ASSERT_THAT(check, IsOk());
  ASSERT_THAT((*experiment)->Run(order, 2), IsOk());
  EXPECT_THAT((*check)->Compare(/*others=*/false),
              Fails(absl::StatusCode::kDataLoss, "were told of 0"));
  EXPECT_THAT((*check)->Compare(/*others=*/true), IsOk());
  RowOrder unknown = order;
  unknown.batches = 100;
  (*check)->Add(unknown);
  EXPECT_THAT((*check)->Compare(/*others=*/true),
              Fails(absl::StatusCode::kDataLoss, "updates"));
}

INSTANTIATE_TEST_SUITE_P(Servers, EmbeddingRows, ::testing::Values(1, 2));

TEST_P(EmbeddingRows, SayWhyNoClientCanReadThem) {
  testing::LocalCluster cluster(Workers());
  for (const char* client : {"carol", "dave", "erin"})
    cluster[client].set_default_timeout(std::chrono::milliseconds(500));
  const auto experiment = RowExperiment::Make(cluster["alice"], Task());
  ASSERT_THAT(experiment, IsOk());
  const RowOrder order{.rows = 10, .batch = 2, .batches = 2};
  EXPECT_THAT((*experiment)->Run(order, 9),
              Fails(absl::StatusCode::kInvalidArgument, "of 9 clients"));
  cluster.Kill("bob");
  EXPECT_FALSE((*experiment)->Run(order, 0).ok());
}

// A worker's output that says so begins a state: what is done then.
class EmbeddingRowsProgram : public ::testing::Test {
 protected:
  struct Reaction {
    std::string to;  // to be said once the one before was
    std::function<void(const std::string& output, const tools::Process&)> what;
  };
  tools::Outcome Run(std::vector<std::string> flags,
                     const std::vector<Reaction>& reactions) {
    size_t next = 0, seen = 0;
    return tools::RunProgram(
        workers_.Command(std::move(flags)),
        [&](const std::string& output, const tools::Process& process) {
          if (next == reactions.size()) return;
          if (output.find(reactions[next].to, seen) == std::string::npos)
            return;
          seen = output.size();
          reactions[next++].what(output, process);
        });
  }
  // Whoever was there first serves.
  static std::string OneThat(bool serves, const std::string& output) {
    const std::string servers = output.substr(0, output.find(" serves"));
    for (const char* name : {"worker1", "worker2", "worker3", "worker4"})
      if ((servers.find(name) != std::string::npos) == serves) return name;
    return "";
  }

  tools::LooseWorkers workers_{"embedding_rows",
                               {"worker1", "worker2", "worker3", "worker4"}};
};

TEST_F(EmbeddingRowsProgram, GoesOnWhenAClientIsKilledAndStartedAgain) {
  std::string killed, loads = "read";
  for (int i = 0; i < 500; ++i) loads += ",read";
  bool back = false;
  const tools::Outcome outcome = Run(
      {"--rows=20000", "--batch=512", "--batches=100", "--load=" + loads},
      {{"read by 3",
        [&](const std::string& output, const tools::Process&) {
          killed = OneThat(/*serves=*/false, output);
          workers_.Kill(killed);
        }},
       {"read by 2", [&](const std::string&,
                         const tools::Process&) { workers_.Start(killed); }},
       {"read by 3", [&](const std::string&, const tools::Process& process) {
          back = true;
          tools::SendSignal(process, SIGTERM);
        }}});
  EXPECT_TRUE(back) << outcome.output;
}

TEST_F(EmbeddingRowsProgram, LosesNoUpdateWhenAServerIsKilledThatHasABackup) {
  bool killed = false;
  const tools::Outcome outcome = Run(
      {"--servers=2", "--backups", "--rows=20000", "--batch=512",
       "--batches=200", "--load=update,train,update", "--lr=1", "--check"},
      {{"update by 2", [&](const std::string& output, const tools::Process&) {
          workers_.Kill(OneThat(/*serves=*/true, output));
          killed = true;
        }}});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(killed);
  // A tenth more and one come before the batches that are measured.
  EXPECT_THAT(outcome.output,
              HasSubstr(absl::StrCat("all ", 3 * 2 * (200 + 21) * 512,
                                     " acknowledged updates are in the rows")));
}

}  // namespace
}  // namespace baton::examples
