// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "models/distributed/simulation.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;

// All stages take as long, F, B and W too; where there are several a worker,
// each is as large as a worker's only one would be.
Workload Even(const std::string& name, int stages, int workers,
              int micro_batches) {
  Workload work;
  work.worker_of_stage = PlaceStages(name, stages, workers).value();
  work.micro_batches = micro_batches;
  work.costs.assign(static_cast<size_t>(stages), StageCosts{1, 1, 1});
  return work;
}

Simulation Simulated(const std::string& name, const Workload& work) {
  const auto schedule = MakeSchedule(name, work);
  EXPECT_THAT(schedule, IsOk()) << name;
  return Simulate(schedule.value(), work).value();
}

std::string Lines(const std::string& name, const Workload& work) {
  return ToString(MakeSchedule(name, work).value());
}

TEST(Schedules, GpipeRunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(Lines("gpipe", Even("gpipe", 2, 2, 2)),
            "schedule gpipe\n"
            "worker 0: 0F0 0F1 0BW0 0BW1\n"
            "worker 1: 1F0 1F1 1BW0 1BW1\n");
}

TEST(Schedules, OneForwardOneBackwardAlternatesAfterItsWarmUp) {
  EXPECT_EQ(Lines("1f1b", Even("1f1b", 3, 3, 4)),
            "schedule 1f1b\n"
            "worker 0: 0F0 0F1 0F2 0BW0 0F3 0BW1 0BW2 0BW3\n"
            "worker 1: 1F0 1F1 1BW0 1F2 1BW1 1F3 1BW2 1BW3\n"
            "worker 2: 2F0 2BW0 2F1 2BW1 2F2 2BW2 2F3 2BW3\n");
}

TEST(Schedules, InterleavedGoesThroughItsStagesInRounds) {
  EXPECT_EQ(Lines("interleaved-1f1b", Even("interleaved-1f1b", 4, 2, 2)),
            "schedule interleaved-1f1b\n"
            "worker 0: 0F0 0F1 2F0 2F1 2BW0 2BW1 0BW0 0BW1\n"
            "worker 1: 1F0 1F1 3F0 3BW0 3F1 3BW1 1BW0 1BW1\n");
}

TEST(Schedules, ZbH1LeavesWeightsForWhenOthersDrain) {
  EXPECT_EQ(Lines("zb-h1", Even("zb-h1", 2, 2, 3)),
            "schedule zb-h1\n"
            "worker 0: 0F0 0F1 0B0 0W0 0F2 0B1 0W1 0B2 0W2\n"
            "worker 1: 1F0 1B0 1F1 1B1 1W0 1F2 1B2 1W1 1W2\n");
}

// The formulas of schedules.h, for uneven F, B and W too.
TEST(Schedules, GpipeAnd1f1bTakeTheirKnownTimeAndMemory) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 13; ++m) {
      for (const StageCosts& costs :
           {StageCosts{1, 1, 1}, StageCosts{4, 6, 3}, StageCosts{2, 1, 5}}) {
        Workload work = Even("gpipe", p, p, m);
        work.costs.assign(work.costs.size(), costs);
        const double each = costs.forward + costs.of(StageOp::kBackward);
        for (const char* name : {"gpipe", "1f1b"}) {
          const Simulation simulation = Simulated(name, work);
          EXPECT_DOUBLE_EQ(simulation.makespan, (m + p - 1) * each) << name;
          EXPECT_NEAR(simulation.bubble(), (p - 1.0) / (m + p - 1), 1e-12);
          for (int worker = 0; worker < p; ++worker) {
            EXPECT_EQ(
                simulation.peak_held[static_cast<size_t>(worker)],
                name == std::string("gpipe") ? m : std::min(p - worker, m))
                << name << ", worker " << worker << " of " << p;
          }
        }
      }
    }
  }
}

TEST(Schedules, InterleavedDividesTheBubbleByTheStagesOfAWorker) {
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        const Workload work = Even("interleaved-1f1b", p * v, p, m);
        const Simulation simulation = Simulated("interleaved-1f1b", work);
        EXPECT_NEAR(simulation.bubble(), (p - 1.0) / (v * m + p - 1), 1e-12)
            << p << " workers of " << v << ", " << m << " micro-batches";
        const double held = v == 1 ? p : p + (p - 1.0) / v;
        EXPECT_LE(simulation.most_held(), held + 1e-12);
        if (m >= 2 * p) {
          EXPECT_NEAR(simulation.most_held(), held, 1e-12);
        }
      }
    }
  }
}

TEST(Schedules, ZbH1HasAThirdOfTheBubbleOf1f1bAndItsMemory) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 3 * p; ++m) {
      // Where F, B and W take 1 each, (p - 1)(F + B - W).
      const Simulation simulation = Simulated("zb-h1", Even("zb-h1", p, p, m));
      EXPECT_EQ(simulation.makespan, 3 * m + p - 1) << p << " " << m;
      EXPECT_EQ(simulation.most_held(), p);
    }
  }
  for (int m : {3, 4, 8}) {
    Workload work = Even("zb-h1", 3, 3, m);
    work.costs.assign(3, {4, 6, 3});
    EXPECT_LE(Simulated("zb-h1", work).makespan, (m + 2) * 13);
  }
}

TEST(Schedules, ZbVHasNoBubbleButTheWayToTheLastWorkerAndTheMemoryOf1f1b) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 3 * p; ++m) {
      const Simulation simulation =
          Simulated("zb-v", Even("zb-v", 2 * p, p, m));
      EXPECT_LE(simulation.most_held(), p);
      // By list schedules: for more workers a few instructions more.
      const double least = 6 * m + p - 1;
      EXPECT_LE(simulation.makespan, least + (p <= 4 ? 0 : p / 2))
          << p << " workers, " << m << " micro-batches";
    }
  }
}

TEST(Schedules, AllAreRightForAllNumbers) {
  for (const std::string& name : ScheduleNames()) {
    for (int p = 1; p <= 5; ++p) {
      for (int v = 1; v <= 3; ++v) {
        if (name == "zb-v" && v != 2) continue;
        for (int m : {1, 2, 3, 4, 5, 7, 8, 12}) {
          const Workload work = Even(name, p * v, p, m);
          const auto schedule = MakeSchedule(name, work);
          ASSERT_THAT(schedule, IsOk()) << name;
          EXPECT_EQ(schedule->name, name);
          EXPECT_EQ(schedule->stages(), p * v);
          EXPECT_EQ(schedule->micro_batches(), m);
          EXPECT_EQ(schedule->worker_of_stage(), work.worker_of_stage);
          EXPECT_THAT(CheckSchedule(*schedule), IsOk()) << ToString(*schedule);
          EXPECT_EQ(ParseSchedule(ToString(*schedule)).value(), *schedule);
        }
      }
    }
  }
}

TEST(Schedules, AnyPlaceWillDoForMost) {
  for (const std::vector<int>& workers :
       {std::vector<int>{0, 0}, {0, 0, 1}, {1, 0, 1}, {0, 1, 2, 1, 0, 0}}) {
    Workload work;
    work.worker_of_stage = workers;
    work.micro_batches = 5;
    for (const char* name : {"gpipe", "1f1b", "zb-h1", "auto"}) {
      const auto schedule = MakeSchedule(name, work);
      ASSERT_THAT(schedule, IsOk()) << name;
      EXPECT_THAT(CheckSchedule(*schedule), IsOk()) << ToString(*schedule);
      EXPECT_EQ(schedule->worker_of_stage(), workers);
    }
    EXPECT_THAT(CheckSchedule(MakeForwards(work).value()), IsOk());
  }
}

// Costs, places and bounds at random, but the same in each run.
Workload RandomWork(std::mt19937& random) {
  const auto number = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const int workers = 1 + number(5);
  const bool there_and_back = number(4) == 0;
  const int stages = there_and_back ? 2 * workers : workers * (1 + number(3));
  Workload work =
      Even(there_and_back ? "zb-v" : "auto", stages, workers, 1 + number(12));
  for (StageCosts& costs : work.costs)
    costs = {1.0 + number(6), 1.0 + number(6), 1.0 + number(6)};
  for (int m = 0; m < work.micro_batches; ++m)
    work.sizes.push_back(0.5 + 0.25 * number(4));
  work.link = 0.5 * number(3);
  work.most_held = 1 + 0.5 * number(4 * workers);
  return work;
}

TEST(Schedules, AutoIsNeverWorseThanTheOthersThatHoldNoMore) {
  std::mt19937 random(3);
  int beaten = 0, cases = 0;
  for (int i = 0; i < 300; ++i) {
    const Workload work = RandomWork(random);
    const auto schedule = MakeSchedule("auto", work);
    ASSERT_THAT(schedule, IsOk());
    ASSERT_THAT(CheckSchedule(*schedule), IsOk());
    const Simulation ours = Simulate(*schedule, work).value();
    EXPECT_LE(ours.most_held(), work.most_held);
    double best = std::numeric_limits<double>::infinity();
    for (const std::string& name : ScheduleNames()) {
      if (name == "auto") continue;
      const auto other = MakeSchedule(name, work);
      if (!other.ok()) continue;  // its stages would be elsewhere
      const Simulation theirs = Simulate(*other, work).value();
      if (theirs.most_held() > work.most_held) continue;
      EXPECT_LE(ours.makespan, theirs.makespan + 1e-9) << name;
      best = std::min(best, theirs.makespan);
    }
    if (work.workers() == 1 || !std::isfinite(best)) continue;
    ++cases;
    if (ours.makespan < best - 1e-9) ++beaten;
  }
  EXPECT_GT(cases, 50);
  EXPECT_GT(beaten, cases / 2);
}

TEST(Schedules, AutoGoesByTheCosts) {
  // The first worker has the most to do. An order by the costs never lets it
  // idle; one by equal costs makes it wait for the second worker.
  Workload work = Even("auto", 2, 2, 4);
  const Schedule by_even = MakeSchedule("auto", work).value();
  work.costs = {{6, 1, 1}, {1, 1, 4}};
  const Schedule by_costs = MakeSchedule("auto", work).value();
  EXPECT_EQ(Simulate(by_costs, work)->makespan, 4 * (6 + 1 + 1));
  EXPECT_GT(Simulate(by_even, work)->makespan, 4 * (6 + 1 + 1));
}

TEST(Schedules, StagesDealtOutInTurnIdleForLess) {
  Workload whole = Even("auto", 2, 2, 4), halves = Even("auto", 4, 2, 4);
  whole.costs.assign(2, {2, 2, 2});
  EXPECT_EQ(Simulated("auto", whole).makespan, 3 * 2 * 4 + 2);
  EXPECT_EQ(Simulated("auto", halves).makespan, 3 * 2 * 4 + 1);
}

TEST(Schedules, SmallMicroBatchesFirstAndLastIdleForLess) {
  Workload alike = Even("auto", 2, 2, 4), unlike = Even("auto", 2, 2, 5);
  unlike.sizes = {0.5, 1, 1, 1, 0.5};
  EXPECT_EQ(Simulated("auto", alike).makespan, 3 * 4 + 1);
  EXPECT_EQ(Simulated("auto", unlike).makespan, 3 * 4 + 0.5);
}

TEST(Schedules, PlacesAreInTurnOrThereAndBack) {
  EXPECT_EQ(PlaceStages("gpipe", 5, 2).value(),
            (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_EQ(PlaceStages("auto", 2, 4).value(), (std::vector<int>{0, 1}));
  EXPECT_EQ(PlaceStages("zb-v", 6, 4).value(),
            (std::vector<int>{0, 1, 2, 2, 1, 0}));
  EXPECT_FALSE(PlaceStages("zb-v", 5, 4).ok());
  EXPECT_FALSE(PlaceStages("zb-v", 6, 2).ok());
  EXPECT_FALSE(PlaceStages("gpipe", 0, 2).ok());
  EXPECT_FALSE(PlaceStages("gpipe", 2, 0).ok());
}

TEST(Schedules, SaysWhatItCannotDo) {
  const auto why = [](const std::string& name, const Workload& work) {
    const absl::Status status = MakeSchedule(name, work).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const Workload two = Even("gpipe", 2, 2, 4);
  EXPECT_THAT(why("fast", two), HasSubstr("'fast', only gpipe"));
  EXPECT_THAT(why("zb-v", two), HasSubstr("there and back again"));
  Workload uneven = Even("gpipe", 3, 2, 4);
  EXPECT_THAT(why("interleaved-1f1b", uneven), HasSubstr("3 stages are at "));
  Workload none = two;
  none.micro_batches = 0;
  EXPECT_THAT(why("gpipe", none), HasSubstr("2 and 0"));
  Workload tight = two;
  tight.most_held = 0.5;
  EXPECT_THAT(why("auto", tight), HasSubstr("less than one"));
}

TEST(ScheduleChoice, TakesOneThatIsGivenIfItFits) {
  Workload work = Even("gpipe", 2, 2, 2);
  ScheduleChoice choice;
  choice.given = ParseSchedule(
                     "schedule mine\n"
                     "worker 0: 1F0 1BW0 1F1 1BW1\n"
                     "worker 1: 0F0 0F1 0BW0 0BW1\n")
                     .value();
  const Schedule schedule = MakeSchedule(choice, work).value();
  EXPECT_EQ(schedule.name, "mine");
  EXPECT_EQ(schedule.workers[0], choice.given->workers[1]);
  EXPECT_EQ(schedule.workers[1], choice.given->workers[0]);
  EXPECT_EQ(PlaceStages(choice, 2, 3).value(), (std::vector<int>{1, 0}));
  EXPECT_FALSE(PlaceStages(choice, 2, 1).ok());
  EXPECT_FALSE(PlaceStages(choice, 3, 3).ok());
  work.micro_batches = 3;
  EXPECT_THAT(std::string(MakeSchedule(choice, work).status().message()),
              HasSubstr("mine is for 2 workers, 2 stages and 2 micro-batches, "
                        "not for 2, 2 and 3"));
  work = Even("gpipe", 4, 2, 1);
  choice.given =
      ParseSchedule("schedule mine\nworker 0: 0F0 1F0\nworker 1: 2F0 3F0\n")
          .value();
  EXPECT_THAT(std::string(MakeSchedule(choice, work).status().message()),
              HasSubstr("puts other stages together"));
}

}  // namespace
}  // namespace baton::dist
