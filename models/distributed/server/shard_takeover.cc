// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Who serves a shard, and what happens when servers and trainers are lost.
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

constexpr std::chrono::milliseconds kAskAgain{100};
// A worker whose connection broke and that does not answer for so long is lost.
constexpr std::chrono::milliseconds kMayBeLost{500};
bool Same(const rpc::WorkerInfo& a, const rpc::WorkerInfo& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

// The directory's worker has not answered, and may do so later.
bool MayAskAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

namespace server_calls {
bool Ping() { return true; }
}  // namespace server_calls

absl::StatusOr<std::shared_ptr<ServerShard>> ServerShard::Make(
    rpc::CallContext& call, const ShardSpec& spec,
    const RRef<ServerDirectory>& directory) {
  RETURN_IF_ERROR(dist::Check(spec.options));
  auto shard = std::make_shared<ServerShard>(call.agent(), spec, directory);
  call.agent().WatchMembers(
      [weak = shard->weak_from_this()](const rpc::MemberEvent& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // The watcher's thread must not run what it may find on the strand.
        self->agent_.executor().Post([self, event] {
          self->Post([event](ServerShard& shard) { shard.OnMember(event); });
        });
      });
  return shard;
}

template <auto kMethod>
void ServerShard::AskForEpoch() {
  if (std::exchange(asking_, true)) return;
  directory_.Async<kMethod>(shard_, epoch_)
      .OnReady([self =
                    shared_from_this()](const absl::StatusOr<int64_t>& epoch) {
        self->Post([epoch](ServerShard& self) {
          self.asking_ = false;
          if (epoch.ok()) {
            self.Begin(*epoch);
          } else if (!MayAskAgain(epoch.status())) {
            self.Fence(epoch.status());
          } else {
            self.agent_.timer().After(kAskAgain, [weak =
                                                      self.weak_from_this()] {
              const auto self = weak.lock();
              if (self == nullptr) return;
              self->agent_.executor().Post([self] {
                self->Post([](ServerShard& s) { s.AskForEpoch<kMethod>(); });
              });
            });
          }
        });
      });
}

void ServerShard::GoAlone() { AskForEpoch<&ServerDirectory::GoAlone>(); }
void ServerShard::Promote() { AskForEpoch<&ServerDirectory::Promote>(); }

// The directory has said that this replica alone is the shard from now on.
void ServerShard::Begin(int64_t epoch) {
  LogWarning("shard ", shard_, " is served by worker ", agent_.self().name,
             " alone from epoch ", epoch, " on");
  epoch_ = epoch;
  backup_.clear();
  role_ = Role::kPrimary;
  const auto unacknowledged = std::exchange(unacknowledged_, {});
  for (const auto& [index, entry] : unacknowledged)
    entry.promise.Set(absl::OkStatus());
  // Behind a gap: nobody was told that they count.
  const auto parked = std::exchange(parked_, {});
  for (const auto& [index, entry] : parked)
    entry.promise.Set(absl::AbortedError("a new epoch has begun"));
  LetGoOfTheLost();
  Wake();
}

void ServerShard::Fence(const absl::Status& why) {
  if (role_ == Role::kFenced) return;
  LogWarning("worker ", agent_.self().name, " serves shard ", shard_,
             " no more: ", why.ToString());
  role_ = Role::kFenced;
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
  if (role_ == Role::kBackup && Same(event.worker, primary_)) {
    if (gone) Promote();
    if (event.kind == Kind::kBroken) AskIfLost();
  }
  if (role_ != Role::kPrimary || !gone) return;
  if (!backup_.empty() && Same(event.worker, backup_.front().owner()))
    GoAlone();
  LetGo(event.worker.name, event.worker.incarnation);
}

void ServerShard::AskIfLost() {
  agent_
      .Async<&server_calls::Ping>(primary_,
                                  rpc::CallOptions{.timeout = kMayBeLost})
      .OnReady([self = shared_from_this()](const absl::StatusOr<bool>& there) {
        if (there.ok()) return;
        self->Post([](ServerShard& self) {
          if (self.role_ == Role::kBackup) self.Promote();
        });
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

// Those whose loss the primary before has not lived to tell.
void ServerShard::LetGoOfTheLost() {
  const auto trainers = state_.clocks().trainers();
  for (const auto& [id, trainer] : trainers) {
    const auto found = agent_.Find(trainer.worker);
    if (!found.ok() || found->incarnation != trainer.incarnation)
      LetGo(trainer.worker, trainer.incarnation);
  }
}

}  // namespace baton::dist
