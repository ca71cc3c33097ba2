// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Which replica serves a shard, and what happens when servers or trainers are
// lost.
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/server/saved_shards.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

// A worker whose connection broke and that does not answer for this long is
// lost.
constexpr std::chrono::milliseconds kMayBeLost{500};

}  // namespace

namespace server_calls {
bool Ping() { return true; }
}  // namespace server_calls

absl::StatusOr<std::shared_ptr<ServerShard>> ServerShard::Make(
    rpc::CallContext& call, const ShardSpec& spec,
    const DirectoryLine& directories) {
  RETURN_IF_ERROR(dist::Check(spec.options));
  ShardSpec whole = spec;
  if (spec.saved.has_value()) {
    const BlockingScope reading;
    ASSIGN_OR_RETURN(whole.image.tables, LoadRows(spec.options, spec.shard,
                                                  spec.shards, *spec.saved));
  }
  auto shard = std::make_shared<ServerShard>(call.agent(), whole, directories);
  call.agent().WatchMembers(
      [weak = shard->weak_from_this()](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // The watcher's thread must not run other tasks of the strand.
        self->agent_.executor().Post([self, event] {
          self->Post([event](ServerShard& shard) { shard.OnMember(event); });
        });
      });
  return shard;
}

bool ServerShard::MayAskAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Asked again after a while, it may have had its answer meanwhile: another
// event had it ask as well. A worker that ends cannot tell who is lost.
template <auto kMethod>
void ServerShard::AskForEpoch() {
  const bool needed = kMethod == &ServerDirectory::Promote
                          ? role_ == Role::kBackup
                          : role_ == Role::kPrimary && !backup_.empty();
  if (!needed || agent_.shutting_down() || std::exchange(asking_, true)) return;
  directories_.front()
      .Async<kMethod>(shard_, epoch_)
      .OnReady(
          [self = shared_from_this()](const absl::StatusOr<int64_t>& epoch) {
            self->Post([epoch](ServerShard& self) {
              self.asking_ = false;
              if (epoch.ok()) {
                self.Begin(*epoch);
              } else if (!MayAskAgain(epoch.status())) {
                self.Fence(epoch.status());
              } else {
                self.StopServing();
                self.After(kAskAgain,
                           [](ServerShard& s) { s.AskForEpoch<kMethod>(); });
              }
            });
          });
}

void ServerShard::GoAlone() { AskForEpoch<&ServerDirectory::GoAlone>(); }
void ServerShard::Promote() { AskForEpoch<&ServerDirectory::Promote>(); }

// The directory has decided that this replica alone is the shard from now on.
void ServerShard::Begin(int64_t epoch) {
  LogWarning("shard ", shard_, " is served by worker ", agent_.self().name,
             " alone from epoch ", epoch, " on");
  epoch_ = epoch;
  backup_.clear();
  SetRole(Role::kPrimary);
  AcknowledgeAll();
  // These follow a gap: no trainer was told that they count.
  const auto parked = std::exchange(parked_, {});
  for (const auto& [index, entry] : parked)
    entry.promise.Set(absl::AbortedError("a new epoch has begun"));
  Wake();
  RecruitLater();
}

void ServerShard::AcknowledgeAll() {
  const auto unacknowledged = std::exchange(unacknowledged_, {});
  for (const auto& [index, entry] : unacknowledged)
    entry.promise.Set(absl::OkStatus());
}

void ServerShard::Fence(const absl::Status& why) {
  if (role_ == Role::kFenced) return;
  LogWarning("worker ", agent_.self().name, " serves shard ", shard_,
             " no more: ", why.ToString());
  SetRole(Role::kFenced);
  fenced_ = why;
  backup_.clear();
  const absl::Status status = NotServing();
  for (auto* entries : {&unacknowledged_, &parked_}) {
    for (const auto& [index, entry] : std::exchange(*entries, {}))
      entry.promise.Set(status);
  }
  for (const WaitingPtr& waiting : std::exchange(waiting_, {}))
    waiting->promise.Set(status);
}

void ServerShard::OnMember(const rpc::MemberEvent& event) {
  using Kind = rpc::MemberEvent::Kind;
  const bool gone = event.kind == Kind::kLost || event.kind == Kind::kLeft;
  if (gone) StrikeOff(event.worker, directories_);
  if (role_ == Role::kBackup && IsSame(event.worker, primary_)) {
    if (gone) Promote();
    if (event.kind == Kind::kBroken) {
      AskIfThere(primary_, [](ServerShard& self, bool there) {
        if (!there && self.role_ == Role::kBackup) self.Promote();
      });
    }
  }
  if (role_ != Role::kPrimary) return;
  if (!backup_.empty() && IsSame(event.worker, backup_.front().owner())) {
    if (gone) GoAlone();
    if (event.kind == Kind::kBroken) {
      AskIfThere(event.worker, [](ServerShard& self, bool there) {
        if (!there && !self.backup_.empty()) self.GoAlone();
      });
    }
  }
  if (gone) {
    LetGo(event.worker.name, event.worker.incarnation);
    GiveUp(event.worker.name);
  }
}

void ServerShard::AskIfThere(const rpc::WorkerInfo& worker,
                             std::function<void(ServerShard&, bool)> then) {
  agent_
      .Async<&server_calls::Ping>(worker,
                                  rpc::CallOptions{.timeout = kMayBeLost})
      .OnReady([self = shared_from_this(),
                then = std::move(then)](const absl::StatusOr<bool>& there) {
        self->Post(
            [then, there = there.ok()](ServerShard& s) { then(s, there); });
      });
}

void ServerShard::LetGo(const std::string& worker, uint64_t incarnation) {
  std::vector<TrainerId> lost;
  for (const auto& [id, trainer] : state_.clocks().trainers()) {
    if (trainer.worker == worker && trainer.incarnation == incarnation)
      lost.push_back(id);
  }
  for (const TrainerId id : lost) {
    last_push_.erase(id);
    Log({.kind = ShardUpdate::Kind::kLeave, .trainer = id})
        .OnReady([](const absl::Status&) {});
  }
}

void ServerShard::GiveUp(const std::string& worker) {
  if (!state_.clocks().Awaits(worker)) return;
  LogWarning("shard ", shard_, " expects no trainer of worker ", worker,
             ", which is lost");
  ShardUpdate update{.kind = ShardUpdate::Kind::kGiveUp};
  update.joining.worker = worker;
  Log(std::move(update)).OnReady([](const absl::Status&) {});
}

// Agent::Find also finds those that were given up but may come back.
void ServerShard::LetGoOfTheLost(
    const std::map<TrainerId, ServedTrainer>& trainers) {
  if (role_ != Role::kPrimary) return;
  std::map<std::string, rpc::WorkerInfo> there;
  for (const rpc::WorkerInfo& worker : agent_.workers())
    there[worker.name] = worker;
  for (const auto& [id, trainer] : trainers) {
    const auto found = there.find(trainer.worker);
    if (found == there.end() ||
        found->second.incarnation != trainer.incarnation)
      LetGo(trainer.worker, trainer.incarnation);
  }
  for (const rpc::WorkerInfo& worker : state_.options().trainer_workers) {
    const auto found = there.find(worker.name);
    if (found == there.end() || found->second.incarnation != worker.incarnation)
      GiveUp(worker.name);
  }
}

}  // namespace baton::dist
