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

// Runs one scenario, in a process of its own that ends with it: as many workers
// and their rendezvous, the faults, and when all is well again, until nothing
// is left in any table. Confined to the first thread.
class Simulation {
 public:
  explicit Simulation(Scenario scenario);
  // Returns when all promises were kept; World::Fail ends the process else.
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
  // Ways are open, nobody is stopped any more: what must be true in the end.
  void AwaitCalm();
  void AwaitAgreement();
  void AwaitReads();
  void AwaitTraining();
  void AwaitForgetting();
  bool ServersHaveChanged() const;
  void Enter(Worker::Phase phase);
  // Fails with `what` after `limit`.
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
  std::vector<Worker*> workers_;  // by machine; null: none runs. Never deleted
  std::vector<bool> leaving_;
  uint64_t maker_ = 0;  // of the parameter servers: its incarnation
};

}  // namespace baton::sim
