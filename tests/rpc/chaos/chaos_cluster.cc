// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/chaos/chaos_cluster.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/program_path.h"

namespace baton::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNames[] = {"alice", "bob", "carol"};
constexpr milliseconds kLease{2000};  // the default
constexpr milliseconds kGoesOn{500};  // the load, after faults nobody sees
constexpr seconds kPatience{60};      // for what has no promised time

long Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / microseconds(1);
}

std::string Program() { return ProgramPath("chaos_worker"); }

}  // namespace

Fault Fault::Draw(uint64_t seed) {
  static constexpr Kind kKinds[] = {Kind::kKill,        Kind::kKill,
                                    Kind::kKill,        Kind::kStop,
                                    Kind::kStopShortly, Kind::kStopLong};
  std::mt19937_64 random(seed);
  Fault fault;
  fault.kind = kKinds[random() % std::size(kKinds)];
  const uint64_t victim = random() % 5;
  fault.victim = victim == 4 ? "rendezvous" : kNames[victim % 3];
  fault.after = microseconds(random() % 80'000);
  if (fault.kind == Kind::kStopShortly) {
    fault.stopped = milliseconds(random() % (kLease.count() / 2));
  } else if (fault.kind == Kind::kStopLong) {
    fault.stopped = kLease + milliseconds(random() % 500);
  }
  return fault;
}

std::string Fault::ToString() const {
  static constexpr const char* kWords[] = {"killed", "stopped for good",
                                           "stopped", "stopped"};
  std::string text = absl::StrCat(victim, " ", kWords[static_cast<int>(kind)]);
  if (resumes()) absl::StrAppend(&text, " for ", stopped.count(), " ms");
  return absl::StrCat(text, " after ", after.count(), " us");
}

ChaosCluster::ChaosCluster() {
  rendezvous_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{Program(), "rendezvous"});
  const std::string address = rendezvous_->ReadLine();
  for (const char* name : kNames) {
    workers_[name].child = std::make_unique<ChildProcess>(
        std::vector<std::string>{Program(), name, address, "3"});
  }
  for (const char* name : kNames) {
    Expect(name, "joined", Clock::now() + kPatience);
  }
}

std::string ChaosCluster::Expect(const std::string& name,
                                 const std::string& begin,
                                 Clock::time_point deadline) {
  Process& process = workers_.at(name);
  while (auto line = process.child->ReadLine(deadline)) {
    std::istringstream words(*line);
    std::string word, lost;
    long when = 0;
    words >> word >> lost >> when;
    if (word == "lost") process.lost.emplace(lost, when);
    if (line->rfind(begin, 0) == 0) return *line;
    if (word != "lost") {
      outcome_.wrong.push_back(absl::StrCat(name, " says: ", *line));
      return "";
    }
  }
  outcome_.wrong.push_back(absl::StrCat(name, " does not say '", begin, "'"));
  return "";
}

Outcome ChaosCluster::Run(uint64_t seed, milliseconds limit) {
  const Fault fault = Fault::Draw(seed);
  uint64_t part = 16 * seed;
  for (auto& [name, process] : workers_) {
    process.child->WriteLine(absl::StrCat("go ", part++, " ", limit.count()));
  }
  std::this_thread::sleep_for(fault.after);
  Inflict(fault);
  if (fault.is_loss()) {
    AwaitLosses(fault, limit);
  } else {
    std::this_thread::sleep_for(kGoesOn);
  }
  EndLoads(fault, limit);
  CheckTables();
  EndProcesses();
  for (auto* lines : {&outcome_.wrong, &outcome_.late}) {
    for (std::string& line : *lines) {
      line = absl::StrCat("seed ", seed, ", ", fault.ToString(), ": ", line);
    }
  }
  return outcome_;
}

void ChaosCluster::Inflict(const Fault& fault) {
  std::unique_ptr<ChildProcess>& victim =
      fault.to_rendezvous() ? rendezvous_ : workers_.at(fault.victim).child;
  struck_at_ = Now();
  victim->Kill(fault.kind == Fault::Kind::kKill ? SIGKILL : SIGSTOP);
  if (!fault.resumes()) return;
  std::this_thread::sleep_for(fault.stopped);
  victim->Kill(SIGCONT);
  resumed_at_ = Now();
}

void ChaosCluster::AwaitLosses(const Fault& fault, milliseconds limit) {
  const auto deadline = Clock::now() + kPatience;
  for (auto& [name, process] : workers_) {
    if (name == fault.victim) continue;
    if (!process.lost.contains(fault.victim)) {
      Expect(name, absl::StrCat("lost ", fault.victim, " "), deadline);
    }
    auto lost = process.lost.find(fault.victim);
    if (lost == process.lost.end()) continue;
    const double ms = static_cast<double>(lost->second - struck_at_) / 1000;
    outcome_.lost_ms.push_back(ms);
    CheckLimit(ms, limit,
               absl::StrCat(name, " saw the loss after ", ms, " ms"));
  }
  // It stays as it is until the survivors are through.
  victim_ = std::move(workers_.at(fault.victim).child);
  workers_.erase(fault.victim);
}

void ChaosCluster::EndLoads(const Fault& fault, milliseconds limit) {
  for (auto& [name, process] : workers_) process.child->WriteLine("end");
  for (auto& [name, process] : workers_) {
    std::istringstream words(Expect(name, "ended ", Clock::now() + kPatience));
    std::string word, odd;
    long calls = 0, errors = 0, slow = 0;
    words >> word >> calls >> errors >> slow;
    for (; slow > 0; --slow) {
      long begin = 0, end = 0;
      words >> begin >> end;
      CheckTime(name, fault, begin, end, limit);
    }
    std::getline(words >> std::ws, odd);
    // The end of a load may follow a loss at once.
    if (calls == 0 && !fault.is_loss()) {
      outcome_.wrong.push_back(name + " made no calls");
    }
    // What a worker passes on that was given up, and with it what it held,
    // names nothing.
    const bool gone = odd.rfind("NOT_FOUND", 0) == 0;
    if (!odd.empty() && !(gone && fault.gives_up())) {
      outcome_.wrong.push_back(name + ": " + odd);
    }
  }
}

// Who was stopped itself could not know better for as long.
void ChaosCluster::CheckTime(const std::string& name, const Fault& fault,
                             long begin, long end, milliseconds limit) {
  long took = end - begin;
  if (name == fault.victim && fault.resumes()) {
    took -=
        std::max(0L, std::min(end, resumed_at_) - std::max(begin, struck_at_));
  }
  const double ms = static_cast<double>(took) / 1000;
  CheckLimit(ms, limit,
             absl::StrCat("a call of ", name, " took ", ms, " ms, from ",
                          (begin - struck_at_) / 1000, " ms after the fault"));
}

void ChaosCluster::CheckLimit(double ms, milliseconds limit, std::string what) {
  const double most = static_cast<double>(limit.count());
  if (ms <= most) return;
  (ms <= 1.5 * most ? outcome_.late : outcome_.wrong)
      .push_back(std::move(what));
}

void ChaosCluster::CheckTables() {
  for (auto& [name, process] : workers_) process.child->WriteLine("check");
  for (auto& [name, process] : workers_) {
    Expect(name, "idle", Clock::now() + kPatience);
  }
}

void ChaosCluster::EndProcesses() {
  for (auto& [name, process] : workers_) process.child->CloseInput();
  for (auto& [name, process] : workers_) {
    const auto status = process.child->Wait(Clock::now() + seconds(15));
    if (!status.has_value()) {
      outcome_.wrong.push_back(name + " does not end");
    } else if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
      outcome_.wrong.push_back(absl::StrCat(name, " ended with ", *status));
    }
  }
}

}  // namespace baton::testing
