// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton::optim {
namespace {

double Fraction(int64_t steps, int64_t total) {
  return static_cast<double>(std::min(steps, total)) /
         static_cast<double>(total);
}

// Goes from `from` to `to` as `done` goes from 0 to 1.
double Anneal(bool cosine, double from, double to, double done) {
  constexpr double kPi = 3.14159265358979323846;
  if (!cosine) return from + (to - from) * done;
  return to + (from - to) * (1 + std::cos(kPi * done)) / 2;
}

void RequireTotal(const char* op, int64_t total) {
  Require(total > 0, op, "total is not positive: ", total);
}

// Returns a schedule that warms up for a tenth of the steps and then follows
// `then`.
template <typename Then>
Schedule Warm(int64_t total, Then then) {
  const int64_t rise = std::max<int64_t>(total / 10, 1);
  return WarmUp(rise, then(std::max<int64_t>(total - rise, 1)));
}

Schedule Cosine(int64_t total) { return CosineLr({.total = total}); }
Schedule Linear(int64_t total) { return PolynomialLr({.total = total}); }

}  // namespace

Schedule StepLr(const StepLrOptions& options) {
  Require(options.every > 0, "step_lr",
          "every is not positive: ", options.every);
  return [options](double base, int64_t steps) {
    return base *
           std::pow(options.factor, static_cast<double>(steps / options.every));
  };
}

Schedule LinearLr(const LinearLrOptions& options) {
  RequireTotal("linear_lr", options.total);
  return [options](double base, int64_t steps) {
    return base * Anneal(false, options.start, options.end,
                         Fraction(steps, options.total));
  };
}

Schedule PolynomialLr(const PolynomialLrOptions& options) {
  RequireTotal("polynomial_lr", options.total);
  return [options](double base, int64_t steps) {
    return base * std::pow(1 - Fraction(steps, options.total), options.power);
  };
}

Schedule CosineLr(const CosineLrOptions& options) {
  RequireTotal("cosine_lr", options.total);
  return [options](double base, int64_t steps) {
    return Anneal(true, base, options.floor, Fraction(steps, options.total));
  };
}

Schedule OneCycleLr(const OneCycleLrOptions& options) {
  constexpr char kOp[] = "one_cycle_lr";
  RequireTotal(kOp, options.total);
  Require(options.rise >= 0 && options.rise <= 1, kOp,
          "rise is not in [0, 1]: ", options.rise);
  Require(options.div_factor > 0 && options.final_div_factor > 0, kOp,
          "a factor is not positive");
  return [options](double base, int64_t steps) {
    const double first = base / options.div_factor;
    const double last = first / options.final_div_factor;
    const double total = static_cast<double>(options.total);
    // The step whose rate is the base rate.
    const double top = options.rise * total - 1;
    struct Phase {
      double end, from, to;
    };
    std::vector<Phase> phases = {{top, first, base}};
    if (options.three_phase) phases.push_back({2 * top, base, first});
    phases.push_back({total - 1, options.three_phase ? first : base, last});
    const double step = static_cast<double>(steps);
    double begin = 0;
    size_t i = 0;
    for (; i + 1 < phases.size() && step > phases[i].end; ++i)
      begin = phases[i].end;
    const Phase& phase = phases[i];
    const double length = phase.end - begin;
    const double done = length == 0 ? 1 : (step - begin) / length;
    return Anneal(options.cosine, phase.from, phase.to, std::min(done, 1.0));
  };
}

Schedule SequentialLr(std::vector<Schedule> schedules,
                      std::vector<int64_t> milestones) {
  Require(schedules.size() == milestones.size() + 1, "sequential_lr",
          schedules.size(), " schedules with ", milestones.size(),
          " milestones");
  Require(std::is_sorted(milestones.begin(), milestones.end()), "sequential_lr",
          "milestones are not in order");
  return [schedules = std::move(schedules), milestones = std::move(milestones)](
             double base, int64_t steps) {
    const auto next =
        std::upper_bound(milestones.begin(), milestones.end(), steps);
    const auto i = static_cast<size_t>(next - milestones.begin());
    return schedules[i](base, steps - (i == 0 ? 0 : milestones[i - 1]));
  };
}

Schedule ChainedLr(std::vector<Schedule> schedules) {
  return [schedules = std::move(schedules)](double base, int64_t steps) {
    for (const Schedule& schedule : schedules) base = schedule(base, steps);
    return base;
  };
}

Schedule WarmUp(int64_t steps, Schedule then) {
  Require(steps > 0, "warm_up", "steps are not positive: ", steps);
  const auto rise = [steps, then](double base, int64_t done) {
    return then(base, 0) * Fraction(done + 1, steps);
  };
  return SequentialLr({rise, std::move(then)}, {steps});
}

absl::StatusOr<Schedule> ScheduleNamed(const std::string& name, int64_t total) {
  using Maker = Schedule (*)(int64_t total);
  static const std::map<std::string, Maker> kMakers = {
      {"constant", [](int64_t) { return Schedule(); }},
      {"cosine", Cosine},
      {"linear", Linear},
      {"one-cycle", [](int64_t steps) { return OneCycleLr({.total = steps}); }},
      {"warm-cosine", [](int64_t steps) { return Warm(steps, Cosine); }},
      {"warm-linear", [](int64_t steps) { return Warm(steps, Linear); }},
  };
  const auto found = kMakers.find(name);
  if (found != kMakers.end()) return found->second(total);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no schedule '", name, "'; there are ",
      absl::StrJoin(kMakers, ", ", [](std::string* to, const auto& maker) {
        to->append(maker.first);
      })));
}

}  // namespace baton::optim
