// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/sim/ledger.h"
#include "tests/sim/rendezvous.h"
#include "tests/sim/scenario.h"
#include "tests/sim/worker.h"

namespace baton::sim {

// Runs one scenario in this process, which then ends: starts workers and their
// rendezvous, applies the faults and, when they are over, waits until no table
// has entries. Confined to the first thread.
class Simulation {
 public:
  explicit Simulation(Scenario scenario);
  // Returns if no promise was broken; otherwise World::Fail ends the process.
  void Run();
  const Ledger& ledger() const { return ledger_; }

 private:
  void StartWorker(int machine);
  void StartLater(int machine, Nanos delay);
  void Apply(const Fault& fault);
  void ApplyToNetwork(const Fault& fault);
  void ApplyToRendezvous(const Fault& fault);
  void ApplyToWorker(const Fault& fault, Worker& worker);
  void End(int machine, bool silently);
  // These check what must be true once all ways are open and no process is
  // stopped.
  void AwaitCalm();
  void AwaitAgreement();
  void AwaitReads();
  void AwaitTraining();
  void AwaitForgetting();
  bool ServersHaveChanged() const;
  void Enter(Worker::Phase phase);
  // Waits until `missing` returns ""; fails with `what` after `limit`.
  void Await(Nanos limit, const std::string& what,
             const std::function<std::string()>& missing);

  const Scenario scenario_;
  Rng random_;
  Network network_;
  Exchange exchange_;
  RendezvousMachine rendezvous_;
  Ledger ledger_;
  Tally tally_;
  const Training training_;
  TrainingLog training_log_;
  std::vector<Worker*> workers_;  // by machine, never deleted; null: none runs
  std::vector<bool> leaving_;
  uint64_t maker_ = 0;  // the incarnation of the servers' maker
};

}  // namespace baton::sim
