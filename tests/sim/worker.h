// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/agent.h"
#include "tests/sim/ledger.h"
#include "tests/sim/pipeline_trainer.h"
#include "tests/sim/rendezvous.h"
#include "tests/sim/trainer.h"
#include "tests/sim/transport.h"

namespace baton::sim {

// A remote object of the simulated workers.
class Cell {
 public:
  explicit Cell(uint64_t number);
  ~Cell();
  static absl::StatusOr<std::unique_ptr<Cell>> Make(rpc::CallContext& call,
                                                    uint64_t number);
  int Add(rpc::CallContext& call, uint64_t number, int n);
  uint64_t number() const { return number_; }
  uint64_t Number() const { return number_; }

  using Exports = rpc::Methods<&Cell::Make, &Cell::Add, &Cell::Number>;

 private:
  const uint64_t number_;
  int value_ = 0;
};

struct WorkerOptions {
  std::string name;
  int machine = 0;
  std::vector<std::string> names;  // all workers, by machine
  uint64_t incarnation = 0;
  uint64_t seed = 0;
  std::chrono::milliseconds lease{1000};
  std::chrono::milliseconds resend_after{200};
  Nanos pause{0};  // between two calls, on average
  // Connections lose no message while they last, so calls may have no timeout.
  bool patient = false;
  // The run has parameter servers, and this worker trains; or it also makes
  // them.
  bool trains = false;
  bool makes_servers = false;
  // This worker's part in the run's pipeline.
  enum class Trains { kNothing, kHasStages, kFirst, kStandby };
  Trains pipeline = Trains::kNothing;
  Nanos pace{0};                // pause between steps, on average
  std::string journal{};        // folder of the trainers' journal; may be empty
  std::string other_trainer{};  // may be empty
};

// The records that all workers of a run share.
struct Books {
  Ledger& ledger;
  Tally& tally;
  const Training& training;
  TrainingLog& training_log;
};

// A worker process: it has the agent that JoinCluster would make, and makes
// calls of all kinds to the other workers, as the seed decides. The world makes
// it; it runs in its own group.
class Worker {
 public:
  Worker(WorkerOptions options, Exchange& exchange,
         RendezvousMachine& rendezvous, const Books& books);

  int group() const { return group_; }
  const std::string& name() const { return options_.name; }
  bool joined() const { return agent_ != nullptr; }
  // Shuts down gracefully and ends its process.
  void Leave() { leaving_ = true; }
  // What it does from now on: makes calls of all kinds; makes short calls to
  // all workers, so that all hear of each other; nothing; reads from the
  // parameter servers once; drops its handles; checks that it keeps no states
  // of ended trainings.
  enum class Phase { kWork, kGreet, kRest, kRead, kDrop, kForget };
  void Enter(Phase phase) {
    phase_ = phase;
    leftovers_ = "not looked at yet";
  }
  bool is_trainer() const {
    return options_.pipeline > WorkerOptions::Trains::kHasStages;
  }
  // Its own thread sets this while it rests or drops; "" if nothing is left.
  const std::string& leftovers() const { return leftovers_; }
  const std::vector<uint64_t>& sees() const { return sees_; }  // incarnations
  const Trainer* trainer() const { return trainer_; }          // may be null
  // Returns the result of its last read; nullopt before the first.
  const std::optional<absl::Status>& read() const { return read_; }

 private:
  struct Held {
    RRef<Cell> cell;
    uint64_t number = 0;
    std::shared_ptr<int> lost;  // how often its owner's loss was reported
  };
  friend struct Pocket;

  void Run();
  bool Join();
  void Step();
  void Look();
  void LookForTrainings();
  void CheckLosses();
  bool has_pipeline() const {
    return options_.pipeline != WorkerOptions::Trains::kNothing;
  }
  std::string AnyWorker();

  void CallPlain();
  void MakeCell();
  void UseCell();
  void GiveCell();
  void TakeCell();
  void AskToUse();
  void DropCell();

  void Put(RRef<Cell> cell, uint64_t number);
  rpc::CallOptions Limited();
  rpc::CallOptions LimitedOrNot();

  const WorkerOptions options_;
  Exchange& exchange_;
  RendezvousMachine& rendezvous_;
  Ledger& ledger_;
  const Books books_;
  const int group_;
  Rng random_;
  std::unique_ptr<rpc::Agent> agent_;
  bool leaving_ = false;
  Phase phase_ = Phase::kWork;
  std::string leftovers_ = "not looked at yet";
  std::vector<uint64_t> sees_;
  std::vector<Held> pocket_;
  Trainer* trainer_ = nullptr;  // never deleted, because answers may come late
  std::optional<absl::Status> read_;
  std::unique_ptr<PipelineTrainer> pipeline_trainer_;
};

}  // namespace baton::sim
