// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "models/distributed/micro_batches.h"
#include "tests/models/distributed/made_profiles.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<StageCosts> RandomCosts(size_t units, std::mt19937& random) {
  std::uniform_real_distribution<double> real(0.5, 3);
  std::vector<StageCosts> costs;
  for (size_t i = 0; i < units; ++i)
    costs.push_back({real(random), real(random), real(random)});
  return costs;
}

// The time of a step with these stages at the first workers, all the same or
// in this order, in schedule "auto": apart from the planner's own sums.
double StepSeconds(const ClusterProfile& profile, int64_t rows,
                   int64_t split_size, const std::vector<size_t>& ends) {
  Workload work;
  const std::vector<RowRange> parts = SplitRows(rows, split_size);
  const auto step = [&](int64_t micro_batch) {
    double sum = 0;
    for (const UnitCosts& unit : profile.workers[0].At(micro_batch))
      sum += unit.seconds.forward + unit.seconds.of(StageOp::kBackward);
    return sum;
  };
  for (const RowRange& part : parts)
    work.sizes.push_back(step(part.size()) / step(split_size));
  work.micro_batches = static_cast<int>(parts.size());
  size_t begin = 0;
  for (size_t stage = 0; stage < ends.size(); ++stage) {
    const std::vector<UnitCosts> units = profile.workers[stage].At(split_size);
    StageCosts sum = {0, 0, 0};
    for (size_t i = begin; i < ends[stage]; ++i) {
      sum.forward += units[i].seconds.forward;
      sum.input_grad += units[i].seconds.input_grad;
      sum.weight_grad += units[i].seconds.weight_grad;
    }
    work.worker_of_stage.push_back(static_cast<int>(stage));
    work.costs.push_back(sum);
    begin = ends[stage];
    if (stage + 1 == ends.size()) continue;
    const LinkCosts& link = profile.links[stage][stage + 1];
    work.transfers.push_back(units[begin - 1].output_bytes *
                             link.seconds_per_byte);
    work.link = std::max(work.link, link.latency_s);
  }
  const Schedule schedule =
      MakeSchedule(ends.size() == 1 ? "1f1b" : "auto", work).value();
  return Simulate(schedule, work).value().makespan;
}

// Calls `judge` with the ends of every way to cut.
void ForAllCuts(size_t units, size_t stages,
                const std::function<void(const std::vector<size_t>&)>& judge,
                std::vector<size_t> ends = {}) {
  if (ends.size() + 1 == stages) {
    ends.push_back(units);
    judge(ends);
    return;
  }
  for (size_t end = ends.empty() ? 1 : ends.back() + 1; end < units; ++end) {
    ends.push_back(end);
    ForAllCuts(units, stages, judge, ends);
    ends.pop_back();
  }
}

double BestByBruteForce(const ClusterProfile& profile, int64_t rows) {
  double best = 1e300;
  const size_t units = profile.workers.front().units.size();
  for (size_t count = 1; count <= profile.workers.size(); ++count) {
    for (int64_t split_size : SplitSizesFor(rows)) {
      ForAllCuts(units, count, [&](const std::vector<size_t>& ends) {
        best = std::min(best, StepSeconds(profile, rows, split_size, ends));
      });
    }
  }
  return best;
}

TEST(Plan, IsAsGoodAsTheBestOfAllCuts) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const size_t units = 2 + random() % 5, count = 1 + random() % 3;
    const int64_t rows = 1 + static_cast<int64_t>(random() % 7);
    const LinkCosts link = {0.1 * static_cast<double>(random() % 4),
                            0.02 * static_cast<double>(random() % 4)};
    const double overhead = 0.2 * static_cast<double>(random() % 3);
    const auto costs = RandomCosts(units, random);
    const ClusterProfile profile =
        Cluster(std::vector<Profile>(count, Made(costs, 1, overhead)), link);
    const auto plan = MakePlan(profile, {.rows = rows});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(plan->seconds(), BestByBruteForce(profile, rows), 1e-9)
        << "round " << round << ": " << ToString(*plan);
    EXPECT_LE(plan->seconds(), plan->alone_s);
  }
}

TEST(Plan, OthersToTryComeByTheirTimes) {
  const ClusterProfile profile = EvenProfile(6, 2);
  const PlanRequest request = {.rows = 8};
  const auto plans = MakePlans(profile, request, 4).value();
  ASSERT_EQ(plans.size(), 5u);  // and one worker alone
  EXPECT_EQ(plans[0].seconds(), MakePlan(profile, request).value().seconds());
  for (size_t i = 1; i < plans.size(); ++i) {
    EXPECT_LE(plans[i - 1].seconds(), plans[i].seconds());
    EXPECT_FALSE(plans[i - 1].cuts == plans[i].cuts &&
                 plans[i - 1].split_size == plans[i].split_size);
    EXPECT_EQ(plans[i].alone_s, plans.back().seconds());
  }
  EXPECT_EQ(plans.back().workers.size(), 1u);
}

TEST(Plan, CutsEvenUnitsInTheMiddle) {
  const Plan plan = MakePlan(EvenProfile(6, 2), {.rows = 8}).value();
  EXPECT_THAT(plan.cuts, ElementsAre("unit.2"));
  EXPECT_THAT(plan.workers, ElementsAre(0, 1));
  EXPECT_EQ(plan.split_size, 1);
  EXPECT_EQ(plan.micro_batches.size(), 8u);
  EXPECT_EQ(plan.schedule.name, "auto");
  EXPECT_DOUBLE_EQ(plan.alone_s, 8 * 6 * 3);
  EXPECT_LT(plan.seconds(), 0.55 * plan.alone_s);
  EXPECT_THAT(ToString(plan), HasSubstr("2 stages, cut after unit.2; "
                                        "8 micro-batches of 1; schedule auto"));
}

TEST(Plan, HasTwoStagesAWorkerWhereTheyAreWanted) {
  const PlanRequest one = {.rows = 2, .split_sizes = {1}};
  PlanRequest two = one;
  two.stages_a_worker = 2;
  const Plan plan = MakePlan(EvenProfile(8, 2), two).value();
  EXPECT_THAT(plan.workers, ElementsAre(0, 1, 0, 1));
  EXPECT_LT(plan.seconds(), MakePlan(EvenProfile(8, 2), one).value().seconds());
  two.stages_a_worker = 3;
  EXPECT_EQ(MakePlan(EvenProfile(8, 2), two).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A micro-batch costs a third of a row's time beside its rows'.
TEST(Plan, MakesTheLastMicroBatchSmallerWhereTheBatchDoesNotDivide) {
  const std::vector<StageCosts> costs(4, {1, 1, 1});
  const ClusterProfile profile =
      Cluster(std::vector<Profile>(2, Made(costs, 1, 0.3)));
  const Plan plan = MakePlan(profile, {.rows = 7}).value();
  EXPECT_THAT(plan.micro_batches, ElementsAre(2, 2, 2, 1));
  EXPECT_EQ(plan.split_size, 2);
  EXPECT_THAT(ToString(plan), HasSubstr("4 micro-batches of 2, the last of 1"));
  const Plan of_three =
      MakePlan(profile, {.rows = 7, .split_sizes = {3, 7}}).value();
  EXPECT_THAT(of_three.micro_batches, ElementsAre(3, 3, 1));
}

TEST(Plan, GivesASlowWorkerLess) {
  const std::vector<StageCosts> costs(9, {1, 1, 1});
  for (const bool slow_first : {false, true}) {
    std::vector<Profile> workers = {Made(costs, slow_first ? 2 : 1),
                                    Made(costs, slow_first ? 1 : 2)};
    const Plan plan = MakePlan(Cluster(workers), {.rows = 32}).value();
    EXPECT_THAT(plan.cuts, ElementsAre(slow_first ? "unit.2" : "unit.5"));
    EXPECT_DOUBLE_EQ(plan.alone_s, 32 * 9 * 3);  // of the fast one
    EXPECT_LT(plan.seconds(), plan.alone_s * 0.72);
  }
}

TEST(Plan, LeavesAWorkerOutThatWouldOnlyHoldUpTheOthers) {
  const std::vector<StageCosts> costs(2, {1, 1, 1});
  const Plan plan =
      MakePlan(Cluster({Made(costs), Made(costs, 50), Made(costs)}),
               {.rows = 8})
          .value();
  EXPECT_THAT(plan.workers, ElementsAre(0, 2));
}

TEST(Plan, UsesOneWorkerAloneWhereLinksForbidACut) {
  // A row takes 18 s at one worker, and 10 bytes to the next.
  const Plan near = MakePlan(EvenProfile(6, 2, {0, 0.1}), {.rows = 8}).value();
  EXPECT_EQ(near.workers.size(), 2u);
  for (const LinkCosts& far : {LinkCosts{0, 2}, LinkCosts{100, 0}}) {
    const Plan plan = MakePlan(EvenProfile(6, 2, far), {.rows = 8}).value();
    EXPECT_THAT(plan.cuts, IsEmpty());
    EXPECT_THAT(plan.workers, ElementsAre(0));
    EXPECT_DOUBLE_EQ(plan.seconds(), plan.alone_s);
    EXPECT_THAT(ToString(plan), HasSubstr("one worker alone; "));
  }
}

// All units cost the same, but after the second there is little to send.
TEST(Plan, CutsWhereThereIsLessToSend) {
  ClusterProfile profile = EvenProfile(6, 2, {0, 1.2});
  for (Profile& worker : profile.workers) {
    for (auto& costs : worker.costs) costs[1].output_bytes /= 10;
  }
  EXPECT_THAT(MakePlan(profile, {.rows = 8}).value().cuts,
              ElementsAre("unit.1"));
}

TEST(Plan, KeepsToTheScheduleThatIsAskedFor) {
  const ClusterProfile profile = EvenProfile(6, 2);
  double automatic = MakePlan(profile, {.rows = 8}).value().seconds();
  for (const std::string& name : ScheduleNames()) {
    const auto plan = MakePlan(profile, {.rows = 8, .schedule = name});
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    EXPECT_EQ(plan->schedule.name, name);
    EXPECT_EQ(plan->workers.size(), name == "zb-v" ? 4u : 2u);
    if (name != "zb-v") {
      EXPECT_GE(plan->seconds(), automatic - 1e-9) << name;
    }
  }
  EXPECT_FALSE(MakePlan(profile, {.rows = 8, .schedule = "none"}).ok());
}

// What was measured 5% wrong, up or down, costs little in truth.
TEST(Plan, StaysGoodUnderNoise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(0.95, 1.05);
  const auto costs = RandomCosts(18, random);
  const auto plan_for = [&](const ClusterProfile& profile) {
    return MakePlan(profile, {.rows = 24}).value();
  };
  const ClusterProfile truth =
      Cluster(std::vector<Profile>(2, Made(costs, 1, 0.5)));
  const double best = plan_for(truth).seconds();
  for (int round = 0; round < 20; ++round) {
    ClusterProfile seen = truth;
    for (Profile& worker : seen.workers) {
      for (size_t unit = 0; unit < costs.size(); ++unit) {
        const double wrong = noise(random);
        for (auto& at : worker.costs) {
          StageCosts& seconds = at[unit].seconds;
          seconds = {wrong * seconds.forward, wrong * seconds.input_grad,
                     wrong * seconds.weight_grad};
        }
      }
    }
    const Plan plan = plan_for(seen);
    ASSERT_EQ(plan.cuts.size(), 1u);
    const auto& units = truth.workers[0].units;
    const auto cut = std::find(units.begin(), units.end(), plan.cuts[0]);
    const double in_truth =
        StepSeconds(truth, 24, plan.split_size,
                    {static_cast<size_t>(cut - units.begin()) + 1, 18});
    EXPECT_LE(in_truth, 1.05 * best) << ToString(plan);
  }
}

TEST(Plan, OfSixtyUnitsOverEightWorkersTakesLessThanASecond) {
  std::mt19937 random(11);
  const auto costs = RandomCosts(60, random);
  std::vector<Profile> workers;
  for (int i = 0; i < 8; ++i) workers.push_back(Made(costs, 1 + 0.05 * i, 0.5));
  const std::clock_t begin = std::clock();  // whatever else runs
  const Plan plan =
      MakePlan(Cluster(workers, {0.1, 0.001}), {.rows = 128}).value();
  const double seconds =
      static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", static_cast<int>(seconds * 1e3));
  EXPECT_EQ(plan.workers.size(), 8u);
  // No worker has more than a bit more than its share.
  EXPECT_LT(plan.seconds(), 0.2 * plan.alone_s);
  EXPECT_LT(seconds, 10);  // without sanitizers about 0.2
}

TEST(Plan, RefusesWhatIsNotWhole) {
  const ClusterProfile whole = EvenProfile(3, 2);
  const auto code = [](const ClusterProfile& profile, int64_t rows,
                       std::vector<int64_t> sizes = {}) {
    return MakePlan(profile, {.rows = rows, .split_sizes = std::move(sizes)})
        .status()
        .code();
  };
  const auto wrong = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(whole, 4), absl::StatusCode::kOk);
  EXPECT_EQ(code(whole, 0), wrong);
  EXPECT_EQ(code(whole, 4, {5}), wrong);
  EXPECT_EQ(code({}, 4), wrong);
  ClusterProfile broken = whole;
  broken.links.pop_back();
  EXPECT_EQ(code(broken, 4), wrong);
  broken = whole;
  broken.workers[1].units[0] = "other";
  EXPECT_EQ(code(broken, 4), wrong);
  broken = whole;
  broken.workers[1].costs[1].pop_back();
  EXPECT_EQ(code(broken, 4), wrong);
  broken = whole;
  broken.workers[1].costs[1][0].seconds.forward = -1;
  EXPECT_EQ(code(broken, 4), wrong);
  broken.workers[1].costs[1][0].seconds.forward = std::nan("");
  EXPECT_EQ(code(broken, 4), wrong);
  broken = whole;
  broken.workers[0].rows = {5, 2};
  EXPECT_EQ(code(broken, 4), wrong);
}

}  // namespace
}  // namespace baton::dist
