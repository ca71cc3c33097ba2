// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {

// Workers of one program, each a process of its own that nobody else starts or
// ends, and where they meet: one is killed as a machine would lose it, and
// started again. Confined to one thread.
class LooseWorkers {
 public:
  // `world_size` counts those of these names and the trainer.
  LooseWorkers(std::string program, const std::vector<std::string>& names)
      : program_(std::move(program)), world_size_(names.size() + 1) {
    auto made = rpc::RendezvousServer::Make("127.0.0.1:0", {});
    EXPECT_THAT(made, testing::IsOk());
    rendezvous_ = *std::move(made);
    for (const std::string& name : names) Start(name);
  }

  void Start(const std::string& name) {
    workers_[name] = std::make_unique<Daemon>(Command({"--name=" + name}));
  }
  // One that is not among `names`, after those have met.
  void Add(const std::string& name) {
    workers_[name] = std::make_unique<Daemon>(std::vector<std::string>{
        program_, "--name=" + name, "--extra", "--lease=1s",
        "--rendezvous=" + rendezvous_->address()});
  }
  void Kill(const std::string& name) { workers_.at(name)->End(SIGKILL); }
  // Of the trainer.
  std::vector<std::string> Command(std::vector<std::string> flags) const {
    flags.insert(flags.begin(),
                 {program_, absl::StrCat("--world_size=", world_size_),
                  "--lease=1s", "--rendezvous=" + rendezvous_->address()});
    return flags;
  }

 private:
  const std::string program_;
  const size_t world_size_;
  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::map<std::string, std::unique_ptr<Daemon>> workers_;
};

struct Rejoining {
  std::string killed;   // the worker
  bool trains = false;  // again
  Outcome outcome;      // of the trainer
};

// Runs a program that has one of three workers serve, and says which, and the
// others train, and says how many "trainers" there are: kills one of these,
// starts it again when it is missed, and ends the program when it trains.
inline Rejoining KillAndStartATrainer(const std::string& program,
                                      std::vector<std::string> flags) {
  LooseWorkers workers(program, {"worker1", "worker2", "worker3"});
  Rejoining result;
  enum { kWhole, kKilled, kBack } state = kWhole;
  size_t seen = 0;  // of the output, in this state
  const auto look = [&](const std::string& output, const Process& process) {
    const char* const next = state == kKilled ? "1 trainers" : "2 trainers";
    if (output.find(next, seen) == std::string::npos) return;
    seen = output.size();
    if (state == kWhole) {
      // Whoever was there first serves.
      const bool serves = output.find("worker3 serves") != std::string::npos;
      result.killed = serves ? "worker2" : "worker3";
      workers.Kill(result.killed);
      state = kKilled;
    } else if (state == kKilled) {
      workers.Start(result.killed);
      state = kBack;
    } else {
      result.trains = true;
      SendSignal(process, SIGTERM);
    }
  };
  result.outcome = RunProgram(workers.Command(std::move(flags)), look);
  return result;
}

}  // namespace baton::tools
