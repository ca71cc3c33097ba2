// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/distributed/schedule.h"
#include "models/distributed/workload.h"

// The schedules that have names. To add one, add a row to the table in
// schedules.cc. For p workers, m micro-batches, and F, B and W that take
// equally long at each worker, tests/models/distributed/schedules_test.cc
// verifies:
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
// after a warm-up, forwards and backwards alternate (Narayanan et al.,
// "PipeDream", SOSP 2019; here with a flush at the end of each step).
// interleaved-1f1b: v stages per worker, assigned round-robin (Narayanan et
// al., SC 2021). zb-h1 and zb-v: weight gradients, which no other stage waits
// for, fill gaps (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, and
// "Pipeline Parallelism with Controllable Memory", NeurIPS 2024); zb-v has two
// stages per worker, and the first worker has the first and the last stage.
// auto: simulates several list schedules and the other schedules with the
// workload's costs and takes the best.
namespace baton::dist {

std::vector<std::string> ScheduleNames();

// Returns the worker of each stage that the schedule needs: round-robin, or
// there and back. Returns InvalidArgument for an unknown name and for numbers
// that the schedule does not support.
absl::StatusOr<std::vector<int>> PlaceStages(const std::string& name,
                                             int stages, int workers);

// Returns InvalidArgument as CheckWorkload does, for an unknown name, and for
// stages that are not where the schedule needs them.
absl::StatusOr<Schedule> MakeSchedule(const std::string& name,
                                      const Workload& work);

// Returns a schedule of forwards only.
absl::StatusOr<Schedule> MakeForwards(const Workload& work);

// The schedule that a pipeline is to follow.
struct ScheduleChoice {
  std::string name = "gpipe";
  double most_held = 0;  // see Workload
  // Used instead of a name. Its workers may be numbered differently.
  std::optional<Schedule> given = std::nullopt;
};
// As above, or as the given schedule places the stages.
absl::StatusOr<std::vector<int>> PlaceStages(const ScheduleChoice& choice,
                                             int stages, int workers);
// As above, or returns the given schedule if it suits the workload.
absl::StatusOr<Schedule> MakeSchedule(const ScheduleChoice& choice,
                                      Workload work);

}  // namespace baton::dist
