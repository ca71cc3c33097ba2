// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/distributed/partition.h"
#include "tests/models/distributed/made_profiles.h"
#include "tests/support/status_matchers.h"

// The memory that plans take, and what they may.
namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlanMemory, KeepsWithinTheMemory) {
  const ClusterProfile profile = EvenProfile(6, 2);
  // Six units of 1000 bytes, twice, and 100 bytes a row held at each.
  double before = 0;
  for (const double most : {8300., 7000., 6500., 6400.}) {
    const Plan plan =
        MakePlan(profile, {.rows = 8, .most_bytes = most}).value();
    ASSERT_EQ(plan.bytes.size(), 2u);
    for (const double bytes : plan.bytes) EXPECT_LE(bytes, most);
    EXPECT_GE(plan.seconds(), before);
    before = plan.seconds();
    EXPECT_EQ(plan.alone_s, 0);  // a worker alone has not the memory
  }
  const auto none = MakePlan(profile, {.rows = 8, .most_bytes = 6000});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("no cut of 6 units over 2 workers keeps within 6000 "
                        "bytes a worker: at least 6310 would be needed"));
  // The optimizer's state counts.
  EXPECT_FALSE(
      MakePlan(profile, {.rows = 8, .most_bytes = 7000, .parameter_copies = 4})
          .ok());
  // Activations that are computed again need not be held for each micro-batch.
  const Plan plain = MakePlan(profile, {.rows = 8, .split_sizes = {1}}).value();
  const Plan again =
      MakePlan(profile, {.rows = 8, .split_sizes = {1}, .recompute = true})
          .value();
  EXPECT_LT(again.bytes[0], plain.bytes[0]);
  EXPECT_GT(again.seconds(), plain.seconds());
}

// A worker of its own process, on the machine's GPU of this name or its CPU.
WorkerPlace PlaceOf(int64_t process, const std::string& gpu, double free = 0) {
  return {.machine = "m", .process = process, .gpu = gpu, .free_bytes = free};
}

TEST(PlanMemory, CountsTheWindowsOfLinks) {
  ClusterProfile profile = EvenProfile(6, 2);
  const PlanRequest request = {
      .rows = 8, .split_sizes = {1}, .schedule = "1f1b"};
  const Plan by_mail = MakePlan(profile, request).value();
  const auto more = [&](std::vector<WorkerPlace> places) {
    profile.places = std::move(places);
    const Plan plan = MakePlan(profile, request).value();
    EXPECT_EQ(plan.cuts, by_mail.cuts);
    return std::vector<double>{plan.bytes[0] - by_mail.bytes[0],
                               plan.bytes[1] - by_mail.bytes[1]};
  };
  // Two micro-batches are under way at the first stage, of 10 bytes each.
  EXPECT_THAT(more({PlaceOf(1, ""), PlaceOf(2, "")}), ElementsAre(20, 20));
  // Each of eight micro-batches has a slot, where the second stage uses it.
  EXPECT_THAT(more({PlaceOf(1, "a", 1e6), PlaceOf(2, "b", 1e6)}),
              ElementsAre(80, 70));
  for (const WorkerPlace& second :
       {PlaceOf(1, ""), PlaceOf(2, "b", 1e6),
        WorkerPlace{.machine = "other", .process = 2, .gpu = ""}})
    EXPECT_THAT(more({PlaceOf(1, ""), second}), ElementsAre(0, 0));
  EXPECT_THAT(more({PlaceOf(1, "a", 1e6), PlaceOf(2, "a", 1e6)}),
              ElementsAre(0, 0));
}

TEST(PlanMemory, KeepsWithinWhatGpusHaveFree) {
  ClusterProfile profile = EvenProfile(6, 2);
  profile.places = {PlaceOf(1, "a", 8000), PlaceOf(2, "b", 9000)};
  const Plan plan = MakePlan(profile, {.rows = 8}).value();
  EXPECT_LE(plan.bytes[0], 0.9 * 8000);
  EXPECT_LE(plan.bytes[1], 0.9 * 9000);
  EXPECT_EQ(plan.alone_s, 0);  // one GPU has not the memory
  // A limit that is given replaces it.
  EXPECT_GT(MakePlan(profile, {.rows = 8, .most_bytes = 1e6}).value().alone_s,
            0);
  profile.places = {PlaceOf(1, "a", 15000), PlaceOf(2, "a", 12000)};
  const Plan shared = MakePlan(profile, {.rows = 8}).value();
  for (const double bytes : shared.bytes) {
    EXPECT_LE(bytes, 0.9 * 15000 / static_cast<double>(shared.bytes.size()));
  }
  profile.places = {PlaceOf(1, "a", 6000), PlaceOf(2, "b", 6000)};
  const auto none = MakePlan(profile, {.rows = 8});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("keeps within 5400 bytes a worker (90% of what its GPU "
                        "has free): at least "));
}

TEST(PlanMemory, MovesTheCutForMemory) {
  ClusterProfile profile = EvenProfile(6, 2);
  for (Profile& worker : profile.workers)
    worker.parameter_bytes = {100, 100, 100, 100, 5000, 100};
  const Plan plan =
      MakePlan(profile, {.rows = 8, .most_bytes = 10'600}).value();
  EXPECT_THAT(plan.cuts, ElementsAre("unit.3"));
}

}  // namespace
}  // namespace baton::dist
