// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/status.h"

namespace baton::dist {
namespace {

using Order = std::vector<IssuedInstruction>;
using Devices = std::vector<int>;

// When the step ends on devices that do what they are given in turn; -1 when
// something is given before what it needs.
double Makespan(const Order& order, const Devices& devices,
                const std::vector<StageCosts>& costs,
                const std::vector<double>& sizes = {}) {
  std::map<std::tuple<StageOp, int, int>, double> ends;
  std::map<int, double> free_at;
  const int stages = static_cast<int>(devices.size());
  double last = 0;
  for (const auto& [stage, instruction] : order) {
    const auto& [op, m] = instruction;
    std::vector<std::tuple<StageOp, int, int>> needs;
    if (op == StageOp::kForward && stage > 0)
      needs.push_back({StageOp::kForward, stage - 1, m});
    if (op == StageOp::kBackward)
      needs.push_back({StageOp::kForward, stage, m});
    if (op == StageOp::kBackward && stage + 1 < stages)
      needs.push_back({StageOp::kBackward, stage + 1, m});
    if (op == StageOp::kWeights)
      needs.push_back({StageOp::kBackward, stage, m});
    const auto at = static_cast<size_t>(stage);
    double begin = free_at[devices[at]];
    for (const auto& need : needs) {
      if (ends.count(need) == 0) return -1;
      begin = std::max(begin, ends[need]);
    }
    const double cost = op == StageOp::kForward    ? costs[at].forward
                        : op == StageOp::kBackward ? costs[at].backward
                                                   : costs[at].weights;
    const double end =
        begin + cost * (sizes.empty() ? 1 : sizes[static_cast<size_t>(m)]);
    if (!ends.emplace(std::tuple(op, stage, m), end).second) return -1;
    free_at[devices[at]] = end;
    last = std::max(last, end);
  }
  return last;
}

std::vector<StageCosts> Even(size_t stages, double each) {
  return std::vector<StageCosts>(stages, StageCosts{each, each, each});
}

std::vector<double> Alike(int micro_batches) {
  return std::vector<double>(static_cast<size_t>(micro_batches), 1);
}

TEST(ZeroBubbleOrder, GivesEverythingOnceAndNothingTooEarly) {
  for (const Devices& devices :
       {Devices{0}, Devices{0, 1}, Devices{0, 1, 0, 1}, Devices{0, 0, 1},
        Devices{0, 1, 2, 3, 0, 1, 2, 3}}) {
    for (int parts : {1, 2, 5, 9}) {
      const Order order =
          ZeroBubbleOrder(devices, Even(devices.size(), 1), Alike(parts));
      EXPECT_EQ(order.size(), 3 * devices.size() * static_cast<size_t>(parts));
      EXPECT_GT(Makespan(order, devices, Even(devices.size(), 1)), 0);
    }
  }
}

TEST(ZeroBubbleOrder, OfEvenStagesIdlesOnlyWhileThePipelineFills) {
  for (int stages : {1, 2, 3, 4}) {
    Devices devices;
    for (int s = 0; s < stages; ++s) devices.push_back(s);
    const auto costs = Even(devices.size(), 1);
    for (int parts : {2 * stages, 2 * stages + 3}) {
      EXPECT_EQ(Makespan(ZeroBubbleOrder(devices, costs, Alike(parts)), devices,
                         costs),
                3 * parts + stages - 1)
          << stages << " stages, " << parts << " micro-batches";
    }
  }
}

TEST(ZeroBubbleOrder, StagesDealtOutInTurnIdleForLess) {
  const int parts = 4;
  const auto whole = Even(2, 2), halves = Even(4, 1);
  const double apart =
      Makespan(ZeroBubbleOrder({0, 1}, whole, Alike(parts)), {0, 1}, whole);
  const double interleaved =
      Makespan(ZeroBubbleOrder({0, 1, 0, 1}, halves, Alike(parts)),
               {0, 1, 0, 1}, halves);
  EXPECT_EQ(apart, 3 * 2 * parts + 2);
  EXPECT_EQ(interleaved, 3 * 2 * parts + 1);
}

TEST(ZeroBubbleOrder, GoesByTheCosts) {
  // The first device has the most to do. An order by the costs never lets it
  // idle; one by equal costs makes it wait for the second device.
  const Devices devices = {0, 1};
  const std::vector<StageCosts> uneven = {{6, 1, 1}, {1, 1, 4}};
  const int parts = 4;
  const auto takes = [&](const std::vector<StageCosts>& expected) {
    return Makespan(ZeroBubbleOrder(devices, expected, Alike(parts)), devices,
                    uneven);
  };
  EXPECT_EQ(takes(uneven), parts * (6 + 1 + 1));
  EXPECT_GT(takes(Even(2, 1)), takes(uneven));
}

TEST(ZeroBubbleOrder, SmallMicroBatchesFirstAndLastIdleForLess) {
  const auto costs = Even(2, 1);
  const auto makespan = [&](const std::vector<double>& sizes) {
    return Makespan(ZeroBubbleOrder({0, 1}, costs, sizes), {0, 1}, costs,
                    sizes);
  };
  EXPECT_EQ(makespan({1, 1, 1, 1}), 3 * 4 + 1);
  EXPECT_EQ(makespan({0.5, 1, 1, 1, 0.5}), 3 * 4 + 0.5);
}

TEST(GroupSizes, AreRelativeToTheirMean) {
  EXPECT_EQ(GroupSizes({{0, 2}, {2, 4}, {4, 6}}, 1),
            (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(GroupSizes({{0, 1}, {1, 2}, {2, 8}}, 2),
            (std::vector<double>{0.5, 1.5}));
}

TEST(ZeroBubbleOrder, BoundsWhatAStageHolds) {
  const Devices devices = {0, 1, 2};
  std::map<int, int> held;
  for (const auto& [stage, instruction] :
       ZeroBubbleOrder(devices, {{1, 1, 1}, {9, 9, 9}, {9, 9, 9}}, Alike(20))) {
    if (instruction.op == StageOp::kForward) ++held[stage];
    if (instruction.op == StageOp::kBackward) --held[stage];
    EXPECT_LE(held[stage], MostHeld(Schedule::kZeroBubble, stage, 3, 20));
  }
}

TEST(ZeroBubbleOrder, RefusesWhatDoesNotFit) {
  EXPECT_THROW(ZeroBubbleOrder({}, {}, {1}), Error);
  EXPECT_THROW(ZeroBubbleOrder({0, 1}, Even(1, 1), {1}), Error);
  EXPECT_THROW(ZeroBubbleOrder({0}, Even(1, 1), {}), Error);
}

}  // namespace
}  // namespace baton::dist
