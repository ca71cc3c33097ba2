// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rpc/spares.h"

namespace baton::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

constexpr const char* kNames[] = {
    "kill",    "power off", "stop",  "close",           "clog",
    "isolate", "sever",     "leave", "kill rendezvous", "stop rendezvous"};

Nanos Millis(Rng& random, int64_t least, int64_t most) {
  return milliseconds(random.Between(least, most));
}

// The consequences depend on whether the fault is shorter or longer than the
// lease.
Nanos LengthOf(Rng& random, milliseconds lease, bool gentle) {
  if (gentle) return Millis(random, 1, lease.count() / 4);
  return random.Chance(0.4) ? Millis(random, 1, lease.count())
                            : Millis(random, lease.count(), 4 * lease.count());
}

Fault NewFault(Rng& random, const Scenario& scenario, bool gentle) {
  static constexpr Kind kRough[] = {
      Kind::kKill,  Kind::kKill,  Kind::kPowerOff,       Kind::kStop,
      Kind::kStop,  Kind::kClose, Kind::kClose,          Kind::kIsolate,
      Kind::kSever, Kind::kLeave, Kind::kKillRendezvous, Kind::kStopRendezvous};
  static constexpr Kind kGentle[] = {Kind::kStop, Kind::kClose, Kind::kSever,
                                     Kind::kSever, Kind::kStopRendezvous};
  Fault fault;
  fault.kind = gentle ? kGentle[random.Below(std::size(kGentle))]
                      : kRough[random.Below(std::size(kRough))];
  fault.at = Nanos(random.Between(0, scenario.duration.count()));
  const auto machines = static_cast<uint64_t>(scenario.workers);
  fault.a = static_cast<int>(random.Below(machines));
  // The rendezvous has one more machine.
  fault.b = static_cast<int>(random.Below(machines + 1));
  if (fault.b == fault.a) fault.b = scenario.workers;
  if (fault.kind == Kind::kClose && random.Chance(0.5)) {
    std::swap(fault.a, fault.b);
  }
  fault.length = LengthOf(random, scenario.lease, gentle);
  return fault;
}

// Adds a trainer, a worker for each stage, and up to two more.
void AddStages(Scenario& scenario) {
  Rng random(scenario.seed ^ 0x5eed);
  scenario.stages = static_cast<int>(random.Between(2, 3));
  const int64_t others = random.Between(0, 2);
  scenario.spares = static_cast<int>(random.Between(0, others));
  scenario.workers = 1 + scenario.stages + static_cast<int>(others);
  scenario.journal = random.Chance(0.6);
  scenario.disk = {.seed = random.Next(),
                   .longest = milliseconds(2),
                   .slow = random.Chance(0.3) ? 0.05 : 0,
                   .slowest = milliseconds(800)};
  // A standby trainer has no stage.
  if (!scenario.journal || random.Chance(0.5)) return;
  scenario.standby = true;
  ++scenario.workers;
}

// Adds situations that other faults seldom cause: two trainers that do not hear
// each other but both hear the workers; and a worker that is lost before its
// buddy has its last states. For three stages, that buddy is the first stage's
// worker, to which the last one sends nothing else that is large.
void AddRareFaults(Scenario& scenario) {
  Rng random(scenario.seed ^ 0xfa17);
  const auto add = [&](Kind kind, Nanos at, int a, int b, Nanos length) {
    scenario.faults.push_back(
        {.kind = kind, .at = at, .a = a, .b = b, .length = length});
  };
  const Nanos at(random.Between(0, scenario.duration.count()));
  const milliseconds lease = scenario.lease;
  if (scenario.standby && random.Chance(0.4)) {
    const Nanos length = Millis(random, 2 * lease.count(), 4 * lease.count());
    add(Kind::kClose, at, 0, 1, length);
    add(Kind::kClose, at, 1, 0, length);
  } else if (scenario.stages == 3 && random.Chance(0.4)) {
    const int first = scenario.standby ? 2 : 1;
    const Nanos length = Millis(random, lease.count(), 2 * lease.count());
    add(Kind::kClog, at, first + 2, first, length);
    add(Kind::kKill, at + Nanos(random.Between(0, length.count())), first + 2,
        first, LengthOf(random, lease, false));
  }
}

}  // namespace

std::string Fault::ToString() const {
  std::string text =
      absl::StrFormat("%9.3f s  %s", static_cast<double>(at.count()) * 1e-9,
                      kNames[static_cast<int>(kind)]);
  if (kind < Kind::kKillRendezvous) absl::StrAppend(&text, " ", a);
  if (kind == Kind::kClose || kind == Kind::kClog)
    absl::StrAppend(&text, " to ", b);
  if (kind == Kind::kSever) absl::StrAppend(&text, " and ", b);
  if (kind != Kind::kSever) {
    absl::StrAppendFormat(&text, " for %.3f s",
                          static_cast<double>(length.count()) * 1e-9);
  }
  return text;
}

Scenario Scenario::Of(uint64_t seed, bool pipelines) {
  Rng random(seed * 0x9e3779b97f4a7c15 + 1);
  Scenario made;
  made.seed = seed;
  made.workers = static_cast<int>(random.Between(2, 5));
  if (pipelines) AddStages(made);
  static constexpr int kLeases[] = {300, 500, 1000, 2000};
  made.lease = milliseconds(kLeases[random.Below(std::size(kLeases))]);
  made.resend_after =
      Nanos(made.lease) > seconds(1) ? milliseconds(300) : made.lease / 5;
  made.pause = Millis(random, 10, 120);
  made.duration = Millis(random, 3000, 12'000);
  if (pipelines)
    made.steps = std::clamp<int64_t>(made.duration / made.pause / 4, 8, 48);
  made.world = {.seed = random.Next(),
                .preempt = random.Chance(0.5) ? 0.02 : 0,
                .late = random.Chance(0.3) ? 0.01 : 0,
                .latest = milliseconds(3)};
  made.network = {.seed = random.Next(),
                  .slow = random.Chance(0.5) ? 0.02 : 0,
                  .slowest = Nanos(made.lease) / 10};
  if (random.Chance(0.3)) {
    made.network.drop = made.network.duplicate = 0.01;
    if (pipelines) made.LoseConnections();
  }
  const bool gentle = random.Chance(0.3);
  const int64_t faults = random.Between(1, gentle ? 20 : 8);
  for (int64_t i = 0; i < faults; ++i) {
    made.faults.push_back(NewFault(random, made, gentle));
  }
  if (pipelines && !gentle) AddRareFaults(made);
  std::stable_sort(made.faults.begin(), made.faults.end(),
                   [](const Fault& x, const Fault& y) { return x.at < y.at; });
  return made;
}

void Scenario::LoseConnections() {
  network.resets = true;
  if (network.drop > 0) network.drop = 0.001;
}

std::string Scenario::NameOf(int machine) const {
  const int spare = machine - (workers - spares);
  return spare < 0 ? absl::StrCat("w", machine) : rpc::SpareName(spare + 1);
}

std::string Scenario::ToString() const {
  std::string text = absl::StrFormat(
      "seed %d: %d workers, lease %d ms, messages again after %d ms, "
      "%.1f s, preempt %g, late %g, slow %g, drop %g\n",
      seed, workers, lease.count(), resend_after.count(),
      static_cast<double>(duration.count()) * 1e-9, world.preempt, world.late,
      network.slow, network.drop);
  if (stages > 0) {
    absl::StrAppendFormat(&text, "  %d steps of %d stages, %d spares%s%s%s\n",
                          steps, stages, spares, journal ? ", a journal" : "",
                          standby ? ", another trainer" : "",
                          disk.slow > 0 ? ", slow disks" : "");
  }
  for (size_t i = 0; i < faults.size(); ++i) {
    absl::StrAppend(&text, "  [", i, "] ", faults[i].ToString(), "\n");
  }
  return text;
}

}  // namespace baton::sim
