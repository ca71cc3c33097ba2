// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/worker.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "models/distributed/state_stores.h"
#include "rpc/agent_core.h"
#include "rpc/call_options.h"
#include "rpc/cluster.h"
#include "tests/sim/differentiation.h"

namespace baton::sim {
namespace {

using std::chrono::milliseconds;

Ledger* ledger = nullptr;  // the run's
std::map<int, Worker*>* workers = nullptr;
std::map<rpc::RRefId, uint64_t>* numbers = nullptr;  // the numbers of cells

uint64_t Mark(rpc::CallContext& call, uint64_t number) {
  ledger->Run(number, World::Get().group(), call.caller());
  return number;
}

}  // namespace

// Handlers that give, take and use the handles in a worker's pocket.
struct Pocket {
  static Worker& Here() { return *workers->at(World::Get().group()); }

  static void Keep(rpc::CallContext& call, RRef<Cell> cell, uint64_t object,
                   uint64_t number) {
    ledger->Run(number, World::Get().group(), call.caller());
    Here().Put(std::move(cell), object);
  }
  static absl::StatusOr<RRef<Cell>> Take(rpc::CallContext& call,
                                         uint64_t number) {
    ledger->Run(number, World::Get().group(), call.caller());
    Worker& here = Here();
    if (here.pocket_.empty()) return absl::FailedPreconditionError("empty");
    return here.pocket_[here.random_.Below(here.pocket_.size())].cell;
  }
  // The handler waits for a call to another worker.
  static absl::StatusOr<int> Use(rpc::CallContext& call, RRef<Cell> cell,
                                 uint64_t inner, uint64_t number) {
    const int group = World::Get().group();
    ledger->Run(number, group, call.caller());
    return cell.Async<&Cell::Add>(call, inner, 1).Await();
  }
};

Cell::Cell(uint64_t number) : number_(number) {
  ledger->Made(number, World::Get().group());
}
Cell::~Cell() { ledger->Gone(number_); }

absl::StatusOr<std::unique_ptr<Cell>> Cell::Make(rpc::CallContext& call,
                                                 uint64_t number) {
  ledger->Run(number, World::Get().group(), call.caller());
  return std::make_unique<Cell>(number);
}

int Cell::Add(rpc::CallContext& call, uint64_t number, int n) {
  ledger->Run(number, World::Get().group(), call.caller());
  return value_ += n;
}

namespace {

rpc::Registry NewRegistry() {
  rpc::Registry registry;
  registry.AddFunction<&Mark>();
  registry.AddFunction<&Pocket::Keep>();
  registry.AddFunction<&Pocket::Take>();
  registry.AddFunction<&Pocket::Use>();
  registry.Add<Cell>();
  Trainer::Register(registry);
  PipelineTrainer::Register(registry);
  RegisterDifferentiation(registry);
  return registry;
}

absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

Worker::Worker(WorkerOptions options, Exchange& exchange,
               RendezvousMachine& rendezvous, const Books& books)
    : options_(std::move(options)),
      exchange_(exchange),
      rendezvous_(rendezvous),
      ledger_(books.ledger),
      books_(books),
      group_(World::Get().NewGroup(options_.name)),
      random_(options_.seed) {
  ledger = &ledger_;
  if (workers == nullptr) {
    workers = new std::map<int, Worker*>;
    numbers = new std::map<rpc::RRefId, uint64_t>;
  }
  (*workers)[group_] = this;
  World::Get().Start(group_, [this] { Run(); });
}

bool Worker::Join() {
  World& world = World::Get();
  auto transport = std::make_unique<SimTransport>(exchange_, options_.machine,
                                                  options_.lease);
  rpc::JoinOptions join{
      .self = {.name = options_.name,
               .incarnation = options_.incarnation,
               .address = transport->address()},
      .wanted_rank = options_.machine,
      .world_size = static_cast<int>(options_.names.size()),
      .timeout = std::chrono::seconds(20),
      .lease = options_.lease,
      .listens = true,
  };
  rpc::AgentOptions agent{
      .self = {},
      .worker_threads = 2,
      .lease = options_.lease,
      .resend_after = options_.resend_after,
      .on_start =
          [this, group = group_](rpc::Agent& started) {
            if (has_pipeline()) dist::Attach(started);
            ledger_.Joined(group, started.self(), started.workers());
            started.WatchMembers([this, group](const rpc::MemberEvent& event) {
              ledger_.Event(group, event);
            });
          },
  };
  // This is how long a client tries to join while the servers are lost.
  if (options_.trains || has_pipeline())
    agent.default_timeout = std::chrono::seconds(5);
  auto started = rpc::internal::JoinBy(
      rendezvous_.DialerOf(options_.machine), "sim", std::move(join),
      std::move(agent), NewRegistry(), std::move(transport), true);
  if (!started.ok()) {
    world.Trace(absl::StrCat("cannot join: ", started.status().ToString()));
    return false;
  }
  agent_ = *std::move(started);
  world.Trace(absl::StrCat("has joined as ", options_.incarnation));
  return true;
}

void Worker::Run() {
  World& world = World::Get();
  while (!Join()) world.Sleep(milliseconds(100));
  if (options_.trains)
    trainer_ = new Trainer(*agent_, random_, books_.tally, group_);
  if (options_.makes_servers)
    trainer_->MakeServers(static_cast<int>(options_.names.size()));
  if (is_trainer()) {
    const bool first = options_.pipeline == WorkerOptions::Trains::kFirst;
    pipeline_trainer_ = std::make_unique<PipelineTrainer>(
        *agent_, random_, books_.training, books_.training_log,
        PipelineTrainer::Options{.group = group_,
                                 .journal = options_.journal,
                                 .other = options_.other_trainer,
                                 .standby = !first,
                                 .pace = options_.pace});
  }
  while (!leaving_) {
    world.Sleep(Nanos(random_.Between(0, 2 * options_.pause.count())));
    if (phase_ == Phase::kWork) {
      Step();
      continue;
    }
    if (phase_ == Phase::kGreet) {
      CallPlain();
      continue;
    }
    if (phase_ == Phase::kRead && !read_.has_value())
      read_ = trainer_ != nullptr
                  ? trainer_->ReadLast(ledger_.IsLost(options_.incarnation))
                  : absl::OkStatus();
    if (phase_ == Phase::kDrop) CheckLosses();
    if (phase_ == Phase::kDrop && trainer_ != nullptr) trainer_->Drop();
    if (phase_ == Phase::kDrop) pipeline_trainer_.reset();
    while (phase_ == Phase::kDrop && !pocket_.empty()) DropCell();
    Look();
  }
  while (!pocket_.empty()) DropCell();
  if (trainer_ != nullptr) trainer_->Drop();
  pipeline_trainer_.reset();
  ledger_.Leaving();
  agent_->Shutdown({.timeout = std::chrono::seconds(5)}).IgnoreError();
  ledger_.Ended(group_);
  exchange_.OnKilled(group_, false);
  world.Kill(group_);
  world.Sleep(Nanos(0));
}

void Worker::Step() {
  if (trainer_ != nullptr && random_.Chance(0.5))
    return trainer_->Step(AnyWorker());
  if (pipeline_trainer_ != nullptr && random_.Chance(0.7))
    return pipeline_trainer_->Step();
  if (has_pipeline() && random_.Chance(0.05))
    return Differentiate(*agent_, AnyWorker(), AnyWorker(), Limited());
  switch (random_.Below(9)) {
    case 0:
    case 1:
      return CallPlain();
    case 2:
      return MakeCell();
    case 3:
      return UseCell();
    case 4:
      return GiveCell();
    case 5:
      return TakeCell();
    case 6:
      return AskToUse();
    default:
      return DropCell();
  }
}

// Describes the entries of its tables.
void Worker::Look() {
  const rpc::internal::Ownership::Counts counts =
      agent_->core()->ownership().counts();
  leftovers_.clear();
  const auto count = [this](const char* what, size_t number) {
    if (number > 0) absl::StrAppend(&leftovers_, " ", number, " ", what);
  };
  count("objects", counts.objects);
  count("grants", counts.grants);
  count("transfers", counts.transfers);
  const rpc::DebugInfo info = agent_->GetDebugInfo();
  if (World::Get().tracing() && phase_ != Phase::kRest)
    World::Get().Trace(info.ToString());
  count("calls made", info.outgoing.size());
  count("calls served", info.incoming.size());
  if (has_pipeline()) LookForTrainings();
  sees_.clear();
  for (const rpc::WorkerInfo& worker : agent_->workers()) {
    sees_.push_back(worker.incarnation);
  }
  std::sort(sees_.begin(), sees_.end());
}

// Adds open contexts and, in the phase kForget, states that are still kept.
void Worker::LookForTrainings() {
  const size_t contexts = dist::OpenContexts(*agent_).size();
  if (contexts > 0) absl::StrAppend(&leftovers_, " ", contexts, " contexts");
  if (phase_ != Phase::kForget) return;
  for (const std::string& line : books_.training_log.lines()) {
    if (dist::StateStores::Of(*agent_)->EpochOf(line) > 0)
      absl::StrAppend(&leftovers_, " the states of ", line);
  }
}

// Call this after the rest, when all workers have heard of all losses.
void Worker::CheckLosses() {
  for (const Held& held : pocket_) {
    const uint64_t owner = held.cell.owner().incarnation;
    if (*held.lost > 0 || std::count(sees_.begin(), sees_.end(), owner) > 0) {
      continue;
    }
    World::Get().Fail(absl::StrCat("worker ", options_.name,
                                   " has not heard of the loss of worker ",
                                   owner, ", which has object ", held.number));
  }
}

std::string Worker::AnyWorker() {
  return options_.names[random_.Below(options_.names.size())];
}

rpc::CallOptions Worker::LimitedOrNot() {
  if (options_.patient && random_.Chance(0.2)) return {.timeout = kNoLimit};
  return Limited();
}

rpc::CallOptions Worker::Limited() {
  return {.timeout = milliseconds(random_.Between(200, 3000))};
}

void Worker::CallPlain() {
  const uint64_t call = ledger_.Begin(group_, true);
  agent_->Async<&Mark>(AnyWorker(), LimitedOrNot(), call)
      .OnReady([this, call](const auto& result) {
        ledger_.End(call, StatusOf(result));
      });
}

void Worker::Put(RRef<Cell> cell, uint64_t number) {
  ledger_.Held(number, group_, 1);
  auto lost = std::make_shared<int>(0);
  cell.OnOwnerLost([lost, number](const RRef<Cell>&, const absl::Status&) {
    if (++*lost == 1) return;
    World::Get().Fail(
        absl::StrCat("the owner of object ", number, " was lost twice"));
  });
  pocket_.push_back({std::move(cell), number, std::move(lost)});
}

void Worker::DropCell() {
  if (pocket_.empty()) return;
  const size_t chosen = random_.Below(pocket_.size());
  std::swap(pocket_[chosen], pocket_.back());
  const Held dropped = std::move(pocket_.back());
  pocket_.pop_back();
  ledger_.Held(dropped.number, group_, -1);
}

void Worker::MakeCell() {
  const uint64_t call = ledger_.Begin(group_, false);
  rpc::Create<Cell>(*agent_, AnyWorker(), LimitedOrNot(), call)
      .OnReady([this, call](const auto& result) {
        ledger_.End(call, StatusOf(result));
        if (!result.ok()) return;
        (*numbers)[result->id()] = call;
        Put(*result, call);
      });
}

void Worker::UseCell() {
  if (pocket_.empty()) return;
  const Held held = pocket_[random_.Below(pocket_.size())];
  const uint64_t call = ledger_.Begin(group_, false);
  held.cell.Async<&Cell::Add>(LimitedOrNot(), call, 1)
      .OnReady([this, call](const auto& result) {
        ledger_.End(call, StatusOf(result));
      });
}

void Worker::GiveCell() {
  if (pocket_.empty()) return;
  const Held held = pocket_[random_.Below(pocket_.size())];
  const uint64_t call = ledger_.Begin(group_, false);
  agent_
      ->Async<&Pocket::Keep>(AnyWorker(), LimitedOrNot(), held.cell,
                             held.number, call)
      .OnReady([this, call](const auto& result) {
        ledger_.End(call, StatusOf(result));
      });
}

void Worker::TakeCell() {
  const uint64_t call = ledger_.Begin(group_, true);
  agent_->Async<&Pocket::Take>(AnyWorker(), LimitedOrNot(), call)
      .OnReady([this, call](const auto& result) {
        ledger_.End(call, StatusOf(result));
        if (result.ok()) Put(*result, numbers->at(result->id()));
      });
}

// Uses a limited call, because handlers that wait for each other may occupy all
// threads of two workers.
void Worker::AskToUse() {
  if (pocket_.empty()) return;
  const Held held = pocket_[random_.Below(pocket_.size())];
  const uint64_t call = ledger_.Begin(group_, false);
  const uint64_t inner = ledger_.Begin(group_, false);
  agent_->Async<&Pocket::Use>(AnyWorker(), Limited(), held.cell, inner, call)
      .OnReady([this, call, inner](const auto& result) {
        // An error names which of the two calls has failed.
        const absl::Status status = StatusOf(result);
        const auto error = rpc::CallErrorOf(status);
        const bool inside = error.has_value() && error->method == "Cell::Add";
        const absl::Status unknown = absl::UnknownError("not seen");
        ledger_.End(call, inside ? unknown : status);
        ledger_.End(inner, inside ? status : unknown);
      });
}

}  // namespace baton::sim
