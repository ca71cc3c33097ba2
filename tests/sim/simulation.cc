// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

constexpr Nanos kLook = milliseconds(50);

}  // namespace

Simulation::Simulation(Scenario scenario)
    : scenario_(std::move(scenario)),
      random_(scenario_.seed),
      network_(scenario_.network),
      exchange_(network_),
      rendezvous_(network_, scenario_.workers),
      ledger_(scenario_.lease),
      training_(scenario_.seed, scenario_.stages, scenario_.steps),
      training_log_(training_, ledger_),
      workers_(scenario_.workers),
      leaving_(scenario_.workers) {}

void Simulation::StartWorker(int machine) {
  const uint64_t incarnation = random_.Below(1'000'000'000) + 1;
  const bool makes_servers = scenario_.servers && machine == 0 && maker_ == 0;
  if (makes_servers) maker_ = incarnation;
  using Trains = WorkerOptions::Trains;
  Trains trains = scenario_.stages > 0 ? Trains::kHasStages : Trains::kNothing;
  if (scenario_.stages > 0 && machine == 0) trains = Trains::kFirst;
  if (scenario_.standby && machine == 1) trains = Trains::kStandby;
  std::string other;
  if (scenario_.standby && machine < 2) other = scenario_.NameOf(1 - machine);
  std::vector<std::string> names;
  for (int each = 0; each < scenario_.workers; ++each)
    names.push_back(scenario_.NameOf(each));
  workers_[machine] = new Worker(
      {.name = names[machine],
       .machine = machine,
       .names = names,
       .incarnation = incarnation,
       .seed = random_.Next(),
       .lease = scenario_.lease,
       .resend_after = scenario_.resend_after,
       .pause = scenario_.pause,
       .patient = scenario_.network.drop == 0 || scenario_.network.resets,
       .trains = scenario_.servers,
       .makes_servers = makes_servers,
       .pipeline = trains,
       .pace = scenario_.duration / std::max<int64_t>(scenario_.steps, 1),
       .journal = scenario_.folder,
       .other_trainer = other},
      exchange_, rendezvous_, {ledger_, tally_, training_, training_log_});
  leaving_[machine] = false;
}

// Uses a thread, because starting a worker takes locks, which a task must not.
void Simulation::StartLater(int machine, Nanos delay) {
  World& world = World::Get();
  world.Start(0, [this, machine, delay] {
    World::Get().Sleep(delay);
    if (workers_[machine] == nullptr) StartWorker(machine);
  });
}

void Simulation::End(int machine, bool silently) {
  Worker* const worker = std::exchange(workers_[machine], nullptr);
  World::Get().Kill(worker->group());
  if (silently) Disk::Get().LosePower(worker->group());
  exchange_.OnKilled(worker->group(), silently);
  if (rendezvous_.group() >= 0) rendezvous_.OnKilled(worker->group());
  ledger_.Ended(worker->group());
}

void Simulation::Apply(const Fault& fault) {
  World::Get().Trace(fault.ToString());
  if (fault.kind == Kind::kClose || fault.kind == Kind::kClog ||
      fault.kind == Kind::kIsolate || fault.kind == Kind::kSever) {
    ApplyToNetwork(fault);
  } else if (fault.kind == Kind::kKillRendezvous ||
             fault.kind == Kind::kStopRendezvous) {
    ApplyToRendezvous(fault);
  } else if (workers_[fault.a] != nullptr) {
    ApplyToWorker(fault, *workers_[fault.a]);
  }
}

void Simulation::ApplyToNetwork(const Fault& fault) {
  if (fault.kind == Kind::kSever) {
    exchange_.Sever(fault.a, fault.b);
    return;
  }
  ledger_.Disturb(fault.length);
  if (fault.kind == Kind::kClose) {
    network_.Close(fault.a, fault.b, fault.length);
    return;
  }
  if (fault.kind == Kind::kClog) {
    network_.Clog(fault.a, fault.b, fault.length);
    return;
  }
  for (int other = 0; other <= scenario_.workers; ++other) {
    if (other == fault.a) continue;
    network_.Close(fault.a, other, fault.length);
    network_.Close(other, fault.a, fault.length);
  }
}

void Simulation::ApplyToRendezvous(const Fault& fault) {
  if (rendezvous_.group() < 0) return;
  World& world = World::Get();
  if (fault.kind == Kind::kStopRendezvous) {
    ledger_.Disturb(fault.length);
    world.Stop(rendezvous_.group(), fault.length);
    return;
  }
  // The new rendezvous reports no losses before a lease has passed.
  ledger_.Disturb(fault.length + 2 * Nanos(scenario_.lease));
  rendezvous_.Kill();
  world.Start(0, [this, length = fault.length] {
    World::Get().Sleep(length);
    if (rendezvous_.group() < 0) rendezvous_.Start();
  });
}

void Simulation::ApplyToWorker(const Fault& fault, Worker& worker) {
  World& world = World::Get();
  if (fault.kind == Kind::kStop) {
    ledger_.Disturb(fault.length);
    world.Stop(worker.group(), fault.length);
  } else if (fault.kind != Kind::kLeave) {
    End(fault.a, fault.kind == Kind::kPowerOff);
    StartLater(fault.a, fault.length);
  } else if (worker.joined() && !leaving_[fault.a]) {
    leaving_[fault.a] = true;
    worker.Leave();
    world.Start(0, [this, &worker, fault] {
      while (World::Get().alive(worker.group())) World::Get().Sleep(kLook);
      if (workers_[fault.a] != &worker) return;
      workers_[fault.a] = nullptr;
      World::Get().Sleep(fault.length);
      if (workers_[fault.a] == nullptr) StartWorker(fault.a);
    });
  }
}

void Simulation::Await(Nanos limit, const std::string& what,
                       const std::function<std::string()>& missing) {
  World& world = World::Get();
  const Nanos until = world.now() + limit;
  for (;;) {
    const std::string left = missing();
    if (left.empty()) return;
    if (world.now() >= until) world.Fail(absl::StrCat(what, ": ", left));
    world.Sleep(kLook);
  }
}

void Simulation::AwaitCalm() {
  Await(seconds(60), "workers do not join", [&]() -> std::string {
    for (int machine = 0; machine < scenario_.workers; ++machine) {
      const Worker* const worker = workers_[machine];
      if (worker == nullptr || !worker->joined() || leaving_[machine]) {
        return scenario_.NameOf(machine);
      }
    }
    return "";
  });
  AwaitTraining();
  Enter(Worker::Phase::kGreet);
  World::Get().Sleep(4 * Nanos(scenario_.lease) + seconds(1));
  Enter(Worker::Phase::kRest);
  Await(seconds(10), "calls do not end",
        [&] { return ledger_.OpenCalls() + tally_.OpenPushes(); });
  AwaitReads();
  AwaitAgreement();
  Enter(Worker::Phase::kDrop);
  if (ServersHaveChanged()) return;
  Await(seconds(50), "tables do not empty", [&]() -> std::string {
    for (Worker* worker : workers_) {
      if (!worker->leftovers().empty()) {
        return absl::StrCat(worker->name(), " has", worker->leftovers());
      }
    }
    return "";
  });
  Await(seconds(1), "objects stay", [&]() -> std::string {
    const size_t alive = ledger_.objects_alive();
    return alive == 0 ? "" : absl::StrCat(alive);
  });
  AwaitForgetting();
}

// Checks that workers keep states for trainers that may come back no longer
// than they should.
void Simulation::AwaitForgetting() {
  if (!scenario_.journal) return;
  World& world = World::Get();
  std::erase_if(workers_, [&](Worker* worker) {
    if (worker->is_trainer()) worker->Leave();
    return worker->is_trainer();
  });
  world.Sleep(seconds(10) + PipelineTrainer::kGrace);
  Enter(Worker::Phase::kForget);
  Await(seconds(5), "states are kept", [&]() -> std::string {
    for (Worker* worker : workers_)
      if (!worker->leftovers().empty())
        return absl::StrCat(worker->name(), " has", worker->leftovers());
    return "";
  });
}

void Simulation::Enter(Worker::Phase phase) {
  for (Worker* worker : workers_) worker->Enter(phase);
}

// A training must end once there are no more faults.
void Simulation::AwaitTraining() {
  if (scenario_.stages == 0) return;
  Await(seconds(600), "the training does not end",
        [&] { return training_log_.over() ? "" : "it is under way"; });
}

// If no worker was lost, all reads must succeed.
void Simulation::AwaitReads() {
  if (!scenario_.servers) return;
  Enter(Worker::Phase::kRead);
  Await(seconds(60), "reads do not end", [&]() -> std::string {
    for (Worker* worker : workers_)
      if (!worker->read().has_value()) return worker->name();
    return "";
  });
  // The servers close if their maker has left.
  if (ledger_.lost() > 1 || ledger_.IsLost(maker_)) return;
  for (Worker* worker : workers_) {
    if (worker->read()->ok()) continue;
    World::Get().Fail(absl::StrCat(
        worker->name(), " cannot read: ", worker->read()->ToString()));
  }
}

// Parameter servers that have lost each other may wait forever.
bool Simulation::ServersHaveChanged() const {
  if (scenario_.servers && ledger_.lost() > 0) return true;
  return std::any_of(workers_.begin(), workers_.end(), [](Worker* worker) {
    const Trainer* const trainer = worker->trainer();
    return trainer != nullptr && trainer->servers_changed();
  });
}

void Simulation::AwaitAgreement() {
  const std::vector<uint64_t> members = ledger_.members();
  Await(4 * Nanos(scenario_.lease) + seconds(1),
        absl::StrCat("members are ", absl::StrJoin(members, " "),
                     " and one of them sees"),
        [&]() -> std::string {
          for (Worker* worker : workers_) {
            if (worker->sees() != members) {
              return absl::StrCat(worker->name(), " only ",
                                  absl::StrJoin(worker->sees(), " "));
            }
          }
          return "";
        });
}

void Simulation::Run() {
  World& world = World::Get();
  rendezvous_.Start();
  for (int machine = 0; machine < scenario_.workers; ++machine) {
    StartWorker(machine);
  }
  world.Sleep(milliseconds(50));
  const Nanos begun = world.now();
  for (const Fault& fault : scenario_.faults) {
    if (begun + fault.at > world.now())
      world.Sleep(begun + fault.at - world.now());
    Apply(fault);
  }
  if (begun + scenario_.duration > world.now()) {
    world.Sleep(begun + scenario_.duration - world.now());
  }
  // Stopped processes continue by themselves.
  network_.Heal();
  AwaitCalm();
}

}  // namespace baton::sim
