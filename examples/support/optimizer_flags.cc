// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/optimizer_flags.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/flags/flag.h"
#include "core/status.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, optimizer, "",
          "sgd, adam, adamw, adagrad, rmsprop or another of optim/kinds.h, and "
          "behind it any of its options, as in adamw,beta2=0.95,amsgrad=1; "
          "default as the usage says");
ABSL_FLAG(std::optional<double>, lr, std::nullopt,
          "largest learning rate; default as the usage says, of another "
          "optimizer 0.001");
ABSL_FLAG(std::optional<double>, momentum, std::nullopt,
          "of an optimizer that has it; default as the usage says, else 0");
ABSL_FLAG(std::optional<double>, weight_decay, std::nullopt,
          "default as the usage says, else the optimizer's");
ABSL_FLAG(std::string, lr_schedule, "",
          "of the learning rate, over all steps: constant, linear, cosine, "
          "one-cycle, warm-linear or warm-cosine, which rises for a tenth of "
          "the steps and then falls to 0; default as the usage says, else "
          "constant");

namespace baton::examples {

optim::Schedule Stepping::RatesOver(int64_t steps) const {
  auto rates = optim::ScheduleNamed(schedule, std::max<int64_t>(steps, 1));
  if (!rates.ok()) throw Error(rates.status());
  return *std::move(rates);
}

std::function<double(int64_t)> Stepping::RateOver(int64_t steps) const {
  return [rates = RatesOver(steps), base = optimizer.lr](int64_t before) {
    return rates == nullptr ? base : rates(base, before);
  };
}

absl::StatusOr<Stepping> SteppingFromFlags(const Stepping& usual) {
  Stepping stepping = usual;
  const std::string chosen = absl::GetFlag(FLAGS_optimizer);
  if (!chosen.empty()) {
    ASSIGN_OR_RETURN(stepping.optimizer, optim::AnyOptions::Parse(chosen));
    if (chosen == usual.optimizer.kind) stepping.optimizer = usual.optimizer;
  }
  for (const auto& [name, value] :
       {std::pair{"lr", absl::GetFlag(FLAGS_lr)},
        std::pair{"momentum", absl::GetFlag(FLAGS_momentum)},
        std::pair{"weight_decay", absl::GetFlag(FLAGS_weight_decay)}}) {
    if (value.has_value())
      RETURN_IF_ERROR(stepping.optimizer.Set(name, *value));
  }
  if (!absl::GetFlag(FLAGS_lr_schedule).empty())
    stepping.schedule = absl::GetFlag(FLAGS_lr_schedule);
  // Report an error before any work.
  RETURN_IF_ERROR(optim::ScheduleNamed(stepping.schedule, 1).status());
  RETURN_IF_ERROR(CatchErrors([&] {
    std::visit([](const auto& rule) { rule.Check(); },
               ops::StepRule(stepping.optimizer));
  }));
  return stepping;
}

absl::StatusOr<optim::AnyOptions> OptimizerFromFlags(
    const optim::AnyOptions& usual) {
  ASSIGN_OR_RETURN(Stepping stepping, SteppingFromFlags({.optimizer = usual}));
  RETURN_IF_ERROR(
      tools::CheckWord("--lr_schedule", stepping.schedule, {"constant"}));
  return std::move(stepping.optimizer);
}

}  // namespace baton::examples
