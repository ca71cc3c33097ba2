// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace baton::examples {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

constexpr int64_t kRows = 16;

// Takes so long for a step.
class Sleeper final : public Trainable {
 public:
  explicit Sleeper(std::chrono::milliseconds step) : step_(step) {}
  absl::StatusOr<double> TrainStep(const TrainingBatch&) override {
    std::this_thread::sleep_for(step_);
    return 0.0;
  }

 private:
  const std::chrono::milliseconds step_;
};

// Two workers that are as fast as each other, and four units of which each row
// takes a second, and each micro-batch so many seconds more.
dist::ClusterProfile EvenCluster(double more = 4) {
  dist::Profile worker;
  worker.rows = {1, kRows};
  worker.costs.resize(2);
  for (int unit = 0; unit < 4; ++unit) {
    worker.units.push_back(absl::StrCat("unit.", unit));
    worker.parameter_bytes.push_back(1);
    for (size_t at = 0; at < 2; ++at) {
      const auto rows = static_cast<double>(worker.rows[at]);
      const double seconds = rows + more;
      worker.costs[at].push_back({{seconds, seconds, seconds}, rows, rows});
    }
  }
  dist::ClusterProfile cluster;
  cluster.workers = {worker, worker};
  cluster.links.assign(2, std::vector<dist::LinkCosts>(2));
  return cluster;
}

auto MeasureEven(double more = 4) {
  return [more](const auto&, const auto&,
                auto) -> absl::StatusOr<dist::ClusterProfile> {
    return EvenCluster(more);
  };
}

// A model that overlap and a small first micro-batch make faster, and at_once
// slower.
PlannedModel Planned(bool on_gpus) {
  return {.measure = MeasureEven(),
          .make = [](const std::vector<std::string>& workers,
                     const PipelineSettings& settings)
              -> absl::StatusOr<std::unique_ptr<Trainable>> {
            std::chrono::milliseconds step(workers.size() < 2 ? 40 : 20);
            if (settings.overlap) step /= 2;
            if (settings.at_once > 1) step *= 4;
            if (!settings.micro_batches.empty()) step /= 4;
            return std::make_unique<Sleeper>(step);
          },
          .on_gpus = [on_gpus](const auto&) { return on_gpus; }};
}

PipelineSettings Open() {
  PipelineSettings settings;
  settings.batch = kRows;
  settings.choose_stages = true;
  settings.trials = 1;
  settings.schedule.name = "auto";
  return settings;
}

class ChooseStagesTest : public ::testing::Test {
 protected:
  void Choose(const PlannedModel& planned) {
    ASSERT_THAT(
        ChooseStages(planned,
                     {Tensor::Zeros({kRows, 1}), Tensor::Zeros({kRows})},
                     settings_, workers_),
        IsOk());
  }
  PipelineSettings settings_ = Open();
  std::vector<std::string> workers_ = {"a", "b"};
};

TEST_F(ChooseStagesTest, WhatMakesAGpusStepFasterStays) {
  Choose(Planned(true));
  EXPECT_THAT(workers_, SizeIs(2));
  EXPECT_TRUE(settings_.overlap);
  EXPECT_EQ(settings_.at_once, 1);
  ASSERT_THAT(settings_.micro_batches, SizeIs(1));
  const std::vector<int64_t>& parts = settings_.micro_batches[0];
  EXPECT_LT(parts.front(), parts.back());
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), kRows);
}

TEST_F(ChooseStagesTest, TwoStagesAWorkerAreTriedWithLargerMicroBatches) {
  int64_t largest_of_one = 0;
  int64_t largest_of_two = 0;
  PlannedModel planned = Planned(true);
  planned.measure = MeasureEven(0.5);
  planned.make = [&](const std::vector<std::string>& workers,
                     const PipelineSettings& settings)
      -> absl::StatusOr<std::unique_ptr<Trainable>> {
    const bool two = settings.cuts.size() == 3;
    if (workers.size() == 2) {
      int64_t& largest = two ? largest_of_two : largest_of_one;
      largest = std::max(largest, settings.split_sizes[0]);
    }
    return std::make_unique<Sleeper>(std::chrono::milliseconds(two ? 5 : 10));
  };
  Choose(planned);
  EXPECT_GT(largest_of_one, 0);
  EXPECT_GT(largest_of_two, largest_of_one);
  EXPECT_THAT(settings_.cuts, SizeIs(3));
}

TEST_F(ChooseStagesTest, WhatLacksTheMemoryIsNotChosen) {
  PlannedModel planned = Planned(true);
  const auto make = planned.make;
  planned.make = [&](const std::vector<std::string>& workers,
                     const PipelineSettings& settings)
      -> absl::StatusOr<std::unique_ptr<Trainable>> {
    if (workers.size() > 1 && (settings.overlap || settings.cuts.size() == 1))
      return absl::ResourceExhaustedError("out of memory");
    return make(workers, settings);
  };
  Choose(planned);
  EXPECT_NE(settings_.cuts.size(), 1);
  EXPECT_FALSE(settings_.overlap);

  settings_ = Open();
  planned.make = [](const auto&,
                    const auto&) -> absl::StatusOr<std::unique_ptr<Trainable>> {
    return absl::ResourceExhaustedError("out of memory");
  };
  EXPECT_EQ(
      ChooseStages(planned, {Tensor::Zeros({kRows, 1}), Tensor::Zeros({kRows})},
                   settings_, workers_)
          .status()
          .code(),
      absl::StatusCode::kResourceExhausted);
}

TEST_F(ChooseStagesTest, ALimitOfMemoryIsKeptByThePlanAlone) {
  settings_.worker_mib = 1000;
  Choose(Planned(true));
  EXPECT_FALSE(settings_.overlap);
  EXPECT_THAT(settings_.micro_batches, IsEmpty());
  EXPECT_THAT(settings_.refined_by, IsEmpty());
}

TEST_F(ChooseStagesTest, OnTheCpuOnlyMicroBatchesAreOpen) {
  Choose(Planned(false));
  EXPECT_FALSE(settings_.overlap);
  EXPECT_THAT(settings_.micro_batches, SizeIs(1));
}

TEST_F(ChooseStagesTest, MicroBatchesThatAFlagGivesStay) {
  settings_.split_sizes = {4};
  Choose(Planned(false));
  EXPECT_THAT(settings_.micro_batches, IsEmpty());
  EXPECT_THAT(settings_.split_sizes, Each(4));
}

TEST_F(ChooseStagesTest, SmallLastMicroBatchesStayWhereTheyAreFastest) {
  std::vector<std::vector<int64_t>> tried;
  PlannedModel planned = Planned(false);
  planned.measure = MeasureEven(0.5);
  planned.make = [&](const auto&, const PipelineSettings& settings)
      -> absl::StatusOr<std::unique_ptr<Trainable>> {
    // The plan with a stage for each worker is the fastest.
    std::chrono::milliseconds step(settings.cuts.size() == 1 ? 20 : 40);
    if (!settings.micro_batches.empty()) {
      tried.push_back(settings.micro_batches[0]);
      step /= static_cast<int>(2 * tried.size());
    }
    return std::make_unique<Sleeper>(step);
  };
  Choose(planned);
  ASSERT_GE(tried.size(), 2u);
  EXPECT_LT(tried[0].front(), tried[0].back());
  EXPECT_LT(tried.back().back(), tried.back().at(1));
  EXPECT_THAT(settings_.micro_batches, ElementsAre(tried.back()));
  EXPECT_THAT(settings_.refined_by, SizeIs(1));
}

TEST(StagesAreOpen, WhereNoFlagSaysHowToCutForSeveralGpus) {
  for (const bool named : {false, true}) {
    for (const bool on_gpus : {false, true}) {
      for (const int workers : {1, 2}) {
        PipelineSettings settings;
        settings.cuts = {"unit.1"};
        settings.split_sizes = {2};
        settings.schedule.name = "gpipe";
        settings.names_no_stages = !named;
        const bool open = !named && on_gpus && workers > 1;
        const std::vector<std::string> names(workers, "a");
        EXPECT_EQ(StagesAreOpen(Planned(on_gpus), names, settings), open);
        EXPECT_EQ(settings.choose_stages, open);
        EXPECT_EQ(settings.cuts.empty(), open);
        EXPECT_EQ(settings.split_sizes.empty(), open);
        EXPECT_EQ(settings.schedule.name, open ? "auto" : "gpipe");
      }
    }
  }
}

}  // namespace
}  // namespace baton::examples
