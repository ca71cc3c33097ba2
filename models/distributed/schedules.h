// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/schedule.h"
#include "models/distributed/workload.h"

// The schedules that have a name. One more is one more row of the table in
// schedules.cc. For p workers, m micro-batches, and F, B and W that take as
// long at each worker, tests/models/distributed/schedules_test.cc holds:
//
// name              step takes                  a worker holds, micro-batches
// gpipe             (m + p - 1)(F + B + W)      m
// 1f1b              the same                    worker w of p at most p - w
// interleaved-1f1b  the same, p - 1 over v      p + (p - 1) / v
// zb-h1             m(F + B + W)                p
//                     + (p - 1)(F + B - W)
// zb-v              m(F + B + W)                p
//                     + (p - 1) F / 2
// auto              no longer than the best of the others that hold no more
//
// gpipe: all forwards, then all backwards (Huang et al., NeurIPS 2019). 1f1b:
// after a warm-up a forward and a backward in turn (Narayanan et al.,
// "PipeDream", SOSP 2019; here with a flush at the end of each step).
// interleaved-1f1b: v stages a worker, dealt out in turn (Narayanan et al., SC
// 2021). zb-h1 and zb-v: gradients of weights, which no other stage waits for,
// fill gaps (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, and
// "Pipeline Parallelism with Controllable Memory", NeurIPS 2024); zb-v has two
// stages a worker, the last two at the first. auto: by the costs of the
// workload, the best by simulation of several list schedules and of the others.
namespace baton::dist {

std::vector<std::string> ScheduleNames();

// The worker of each stage that suits the schedule: in turn, or there and back
// again. InvalidArgument for a name that there is not and for numbers that the
// schedule cannot have.
absl::StatusOr<std::vector<int>> PlaceStages(const std::string& name,
                                             int stages, int workers);

// InvalidArgument as CheckWorkload, for a name that there is not, and for
// stages that are not where the schedule needs them.
absl::StatusOr<Schedule> MakeSchedule(const std::string& name,
                                      const Workload& work);

// The forwards alone.
absl::StatusOr<Schedule> MakeForwards(const Workload& work);

// What a pipeline is told to follow.
struct ScheduleChoice {
  std::string name = "gpipe";
  double most_held = 0;  // see Workload
  // In place of a name. Its workers may be numbered in another way.
  std::optional<Schedule> given = std::nullopt;
};
// As above, or where the schedule that was given has the stages.
absl::StatusOr<std::vector<int>> PlaceStages(const ScheduleChoice& choice,
                                             int stages, int workers);
// As above, or the schedule that was given, if it is for such a workload.
absl::StatusOr<Schedule> MakeSchedule(const ScheduleChoice& choice,
                                      Workload work);

}  // namespace baton::dist
