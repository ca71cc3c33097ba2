// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/runner.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/disk.h"
#include "tests/sim/real.h"
#include "tests/sim/simulation.h"

namespace baton::sim {
namespace {

// In real time: a run that takes longer hangs.
constexpr int64_t kLongest = 300'000'000'000;

// Switching between threads is fastest on one core, and only one runs at a
// time.
void StayOnThisCore() {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(sched_getcpu(), &core);
  sched_setaffinity(0, sizeof(core), &core);
}

std::string Written(const Outcome& outcome) {
  return absl::StrCat(outcome.simulated_s, " ", outcome.steps, " ",
                      outcome.calls, " ", outcome.digest, "\n", outcome.wrong);
}

Outcome Read(const std::string& text) {
  Outcome outcome;
  std::istringstream in(text);
  in >> outcome.simulated_s >> outcome.steps >> outcome.calls >> outcome.digest;
  const size_t line = text.find('\n');
  if (line == std::string::npos) {
    outcome.wrong = "the process ended: " + text;
  } else {
    outcome.wrong = text.substr(line + 1);
  }
  return outcome;
}

// A run in a child process.
class Child {
 public:
  explicit Child(Scenario scenario) : scenario_(std::move(scenario)) {
    if (scenario_.journal) {
      folder_ = std::filesystem::temp_directory_path() / "baton_sim_XXXXXX";
      scenario_.folder = mkdtemp(folder_.data());
    }
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      Run(ends[1]);
    }
    close(ends[1]);
    from_ = ends[0];
    begun_ = real::NowNanos();
  }

  const Scenario& scenario() const { return scenario_; }
  int from() const { return from_; }
  // Returns true when the child has ended.
  bool Listen() {
    char bytes[4096];
    const ssize_t count = read(from_, bytes, sizeof(bytes));
    if (count > 0) {
      text_.append(bytes, static_cast<size_t>(count));
      return false;
    }
    close(from_);
    int status = 0;
    waitpid(pid_, &status, 0);
    std::error_code error;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
    if (WIFSIGNALED(status)) {
      const char* const name = strsignal(WTERMSIG(status));
      text_ = absl::StrCat("0 0 0 0\nended by a signal: ", name);
    }
    return true;
  }
  void EndIfLate() {
    if (real::NowNanos() - begun_ > kLongest) kill(pid_, SIGKILL);
  }
  Outcome outcome() const { return Read(text_); }

 private:
  [[noreturn]] void Run(int to) {
    StayOnThisCore();
    World& world = World::Get();
    Simulation* simulation = nullptr;
    const auto report = [&](const std::string& wrong) {
      const std::string text = Written(
          {.wrong = wrong,
           .simulated_s = static_cast<double>(world.now().count()) * 1e-9,
           .steps = world.steps(),
           .calls = simulation->ledger().calls(),
           .digest = world.digest()});
      if (write(to, text.data(), text.size()) < 0) std::abort();
    };
    world.on_failure = report;
    Disk::Get().Begin(scenario_.disk);
    world.Begin(scenario_.world);
    simulation = new Simulation(scenario_);
    simulation->Run();
    report("");
    world.Exit(0);
  }

  Scenario scenario_;
  std::string folder_;  // for the child's files
  int from_ = -1;
  pid_t pid_ = 0;
  int64_t begun_ = 0;
  std::string text_;
};

}  // namespace

void RunAll(const std::function<bool(Scenario* next)>& next, int jobs,
            const std::function<bool(const Scenario&, const Outcome&)>& done) {
  std::list<Child> children;
  bool more = true;
  for (;;) {
    Scenario scenario;
    while (more && static_cast<int>(children.size()) < jobs &&
           (more = next(&scenario))) {
      children.emplace_back(scenario);
    }
    if (children.empty()) return;
    std::vector<pollfd> ready;
    for (const Child& child : children) {
      ready.push_back({.fd = child.from(), .events = POLLIN, .revents = 0});
    }
    poll(ready.data(), ready.size(), 1000);
    size_t i = 0;
    for (auto child = children.begin(); child != children.end(); ++i) {
      child->EndIfLate();
      if (ready[i].revents == 0 || !child->Listen()) {
        ++child;
        continue;
      }
      more &= done(child->scenario(), child->outcome());
      child = children.erase(child);
    }
  }
}

Outcome RunOne(const Scenario& scenario) {
  Outcome outcome;
  bool begun = false;
  RunAll(
      [&](Scenario* next) {
        *next = scenario;
        return !std::exchange(begun, true);
      },
      1,
      [&](const Scenario&, const Outcome& ended) {
        outcome = ended;
        return true;
      });
  return outcome;
}

Scenario Shrink(const Scenario& failing) {
  Scenario least = failing;
  size_t part = std::max<size_t>(least.faults.size() / 2, 1);
  while (!least.faults.empty()) {
    bool smaller = false;
    for (size_t from = 0; from < least.faults.size();) {
      Scenario without = least;
      const auto begin = without.faults.begin() + static_cast<long>(from);
      const size_t to = std::min(from + part, without.faults.size());
      without.faults.erase(begin,
                           without.faults.begin() + static_cast<long>(to));
      if (RunOne(without).wrong.empty()) {
        from += part;
      } else {
        least = std::move(without);
        smaller = true;
      }
    }
    if (!smaller && part == 1) break;
    part = std::max<size_t>(part / 2, 1);
  }
  return least;
}

}  // namespace baton::sim
