// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace baton::testing {

// What is done to whom in one run, all of it drawn from the seed.
struct Fault {
  enum class Kind { kKill, kStop, kStopShortly, kStopLong };
  Kind kind;
  std::string victim;                    // a worker, or "rendezvous"
  std::chrono::microseconds after;       // the beginning of the load
  std::chrono::milliseconds stopped{0};  // of those that resume

  static Fault Draw(uint64_t seed);
  std::string ToString() const;
  bool to_rendezvous() const { return victim == "rendezvous"; }
  // The victim comes back as it was.
  bool resumes() const {
    return kind == Kind::kStopShortly || kind == Kind::kStopLong;
  }
  // Its peers must see errors. Of one that resumes they may, if it was away for
  // long; those that had no connection to it may find it there again.
  bool is_loss() const { return !to_rendezvous() && !resumes(); }
  // A worker may be given up for it.
  bool gives_up() const {
    return !to_rendezvous() && kind != Kind::kStopShortly;
  }
};

// What came of a run.
struct Outcome {
  std::vector<std::string> wrong;  // empty: all as promised
  std::vector<std::string> late;   // over the limit, by half of it at most
  std::vector<double> lost_ms;     // until each survivor saw the loss
};

// A rendezvous and three workers, each a process, that one fault befalls.
// Confined to one thread.
class ChaosCluster {
 public:
  ChaosCluster();
  // Ends the load, looks for what is left, and ends the processes.
  Outcome Run(uint64_t seed, std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    std::unique_ptr<ChildProcess> child;
    std::map<std::string, long> lost;  // when it lost whom, in microseconds
  };

  // The next line that begins so; what comes before it is kept or is wrong.
  std::string Expect(const std::string& name, const std::string& begin,
                     Clock::time_point deadline);
  void Inflict(const Fault& fault);
  // Notes what took `ms` where that is over the limit.
  void CheckLimit(double ms, std::chrono::milliseconds limit, std::string what);
  void AwaitLosses(const Fault& fault, std::chrono::milliseconds limit);
  void EndLoads(const Fault& fault, std::chrono::milliseconds limit);
  // Of a call that was over the limit: whether the worker that made it had so
  // much time, less that in which it was stopped itself. In microseconds.
  void CheckTime(const std::string& name, const Fault& fault, long begin,
                 long end, std::chrono::milliseconds limit);
  void CheckTables();
  void EndProcesses();

  std::map<std::string, Process> workers_;
  std::unique_ptr<ChildProcess> rendezvous_;
  std::unique_ptr<ChildProcess> victim_;  // a worker that does not come back
  long struck_at_ = 0;                    // microseconds
  long resumed_at_ = 0;                   // the same, of one that resumes
  Outcome outcome_;
};

}  // namespace baton::testing
