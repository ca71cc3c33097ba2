// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Runs simulations of a cluster (docs/design/simulator.md):
//   sim [--seeds=1000] [--first=1] [--jobs=2]   many seeds; stops at the first
//                                               failure and minimizes it
//   sim --seed=K [--only=2,5] [--trace]         one seed, with all of its
//   faults
//                                               or only these
// With --servers, all workers push to parameter servers, too; with --pipelines,
// the first worker trains a pipeline. The last line of output is JSON. The exit
// code is 0, 1 if a promise was broken, or 2 for a wrong flag.

#include <sys/personality.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/log.h"
#include "tests/sim/real.h"
#include "tests/sim/runner.h"

namespace baton::sim {
namespace {

struct Flags {
  uint64_t seeds = 1000;
  uint64_t first = 1;
  uint64_t seed = 0;  // 0: many seeds
  uint64_t jobs = 2;
  std::vector<size_t> only;
  bool all_faults = true;
  bool trace = false;
  bool shrink = true;
  bool keep_going = false;
  bool servers = false;
  bool pipelines = false;

  Scenario ScenarioOf(uint64_t number) const {
    Scenario scenario = Scenario::Of(number, pipelines);
    if (servers) scenario.AddServers();
    return scenario;
  }
};

bool Parse(int argc, char** argv, Flags& flags) {
  const std::map<std::string, uint64_t*> numbers = {{"--seeds", &flags.seeds},
                                                    {"--first", &flags.first},
                                                    {"--seed", &flags.seed},
                                                    {"--jobs", &flags.jobs}};
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> flag =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const auto number = numbers.find(flag.first);
    if (number != numbers.end()) {
      if (!absl::SimpleAtoi(flag.second, number->second)) return false;
    } else if (flag.first == "--only") {
      flags.all_faults = false;
      for (const auto& text :
           absl::StrSplit(flag.second, ',', absl::SkipEmpty())) {
        size_t fault = 0;
        if (!absl::SimpleAtoi(text, &fault)) return false;
        flags.only.push_back(fault);
      }
    } else if (flag.first == "--trace") {
      flags.trace = true;
    } else if (flag.first == "--noshrink") {
      flags.shrink = false;
    } else if (flag.first == "--servers") {
      flags.servers = true;
    } else if (flag.first == "--pipelines") {
      flags.pipelines = true;
    } else if (flag.first == "--keep_going") {
      flags.keep_going = true;
    } else {
      return false;
    }
  }
  return flags.jobs > 0;
}

Scenario ScenarioOf(const Flags& flags) {
  Scenario scenario = flags.ScenarioOf(flags.seed);
  scenario.world.trace = flags.trace;
  if (flags.all_faults) return scenario;
  std::vector<Fault> kept;
  for (const size_t fault : flags.only) {
    if (fault < scenario.faults.size()) kept.push_back(scenario.faults[fault]);
  }
  scenario.faults = std::move(kept);
  return scenario;
}

// Returns the command line that runs a scenario with fewer faults again.
std::string CommandOf(const Scenario& smaller) {
  const bool pipelines = smaller.stages > 0;
  const Scenario whole = Scenario::Of(smaller.seed, pipelines);
  std::vector<size_t> only;
  size_t next = 0;
  for (const Fault& fault : smaller.faults) {
    while (whole.faults[next].ToString() != fault.ToString()) ++next;
    only.push_back(next++);
  }
  std::string command = absl::StrCat("sim --seed=", smaller.seed);
  if (smaller.servers) absl::StrAppend(&command, " --servers");
  if (pipelines) absl::StrAppend(&command, " --pipelines");
  if (only.size() < whole.faults.size()) {
    absl::StrAppend(&command, " --only=", absl::StrJoin(only, ","));
  }
  return command;
}

void Report(const Scenario& scenario, const Outcome& outcome, bool shrink) {
  std::printf("%sWRONG after %.3f s: %s\nagain: %s --trace\n",
              scenario.ToString().c_str(), outcome.simulated_s,
              outcome.wrong.c_str(), CommandOf(scenario).c_str());
  if (!shrink) return;
  const Scenario least = Shrink(scenario);
  std::printf("smaller: %s --trace\n%s  %s\n", CommandOf(least).c_str(),
              least.ToString().c_str(), RunOne(least).wrong.c_str());
}

int RunSeed(const Flags& flags) {
  const Scenario scenario = ScenarioOf(flags);
  if (flags.trace) std::printf("%s", scenario.ToString().c_str());
  const Outcome outcome = RunOne(scenario);
  std::printf(
      "{\"what\": \"sim\", \"seed\": %lu, \"simulated_s\": %.3f, \"steps\": "
      "%lu, "
      "\"calls\": %lu, \"digest\": \"%016lx\", \"wrong\": \"%s\"}\n",
      flags.seed, outcome.simulated_s, outcome.steps, outcome.calls,
      outcome.digest, outcome.wrong.c_str());
  return outcome.wrong.empty() ? 0 : 1;
}

int RunMany(const Flags& flags) {
  const int64_t begun = real::NowNanos();
  const auto seconds = [&] {
    return static_cast<double>(real::NowNanos() - begun) * 1e-9;
  };
  uint64_t started = 0, ended = 0, wrong = 0, steps = 0, calls = 0;
  double simulated = 0;
  RunAll(
      [&](Scenario* next) {
        if (started == flags.seeds) return false;
        *next = flags.ScenarioOf(flags.first + started++);
        return true;
      },
      static_cast<int>(flags.jobs),
      [&](const Scenario& scenario, const Outcome& outcome) {
        ++ended;
        simulated += outcome.simulated_s;
        steps += outcome.steps;
        calls += outcome.calls;
        if (!outcome.wrong.empty()) {
          ++wrong;
          Report(scenario, outcome, flags.shrink);
        }
        if (isatty(1) != 0 && ended % 16 == 0) {
          std::printf("\r%lu of %lu seeds, %.0f simulated s, %.0f of them a s",
                      ended, flags.seeds, simulated, simulated / seconds());
          std::fflush(stdout);
        }
        return outcome.wrong.empty() || flags.keep_going;
      });
  std::printf(
      "{\"what\": \"sim\", \"seeds\": %lu, \"wrong\": %lu, \"simulated_s\": "
      "%.0f, \"steps\": %lu, \"calls\": %lu, \"seconds\": %.1f, "
      "\"simulated_s_per_s\": %.0f}\n",
      ended, wrong, simulated, steps, calls, seconds(), simulated / seconds());
  return wrong == 0 ? 0 : 1;
}

// Executes this program again without address randomization, because libraries
// order some things by address. If the system does not allow that, a few seeds
// differ from run to run.
void FixAddresses(char** argv) {
  const int now = ::personality(0xffffffff);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (::personality(static_cast<unsigned>(now) | ADDR_NO_RANDOMIZE) != -1)
    ::execv("/proc/self/exe", argv);
}

}  // namespace
}  // namespace baton::sim

int main(int argc, char** argv) {
  baton::sim::Flags flags;
  if (!baton::sim::Parse(argc, argv, flags)) {
    std::fprintf(stderr,
                 "usage: sim [--seeds=N] [--first=K] [--jobs=N] [--keep_going] "
                 "[--noshrink] [--servers] [--pipelines] | sim --seed=K "
                 "[--only=I,J] [--trace] [--servers] [--pipelines]\n");
    return 2;
  }
  baton::sim::FixAddresses(argv);
  // Logs at one level always, because logging takes simulated steps.
  baton::SetLogLevel(baton::LogLevel::kInfo);
  if (!flags.trace && std::freopen("/dev/null", "w", stderr) == nullptr)
    return 1;
  return flags.seed == 0 ? baton::sim::RunMany(flags)
                         : baton::sim::RunSeed(flags);
}
