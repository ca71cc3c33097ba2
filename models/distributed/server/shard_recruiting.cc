// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// How a primary without a backup gets a new one.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

constexpr std::chrono::milliseconds kRecruitAgain{200};

}  // namespace

void ServerShard::RecruitLater() {
  if (!state_.options().backups || std::exchange(recruiting_, true)) return;
  After(kRecruitAgain, [](ServerShard& self) { self.Recruit(); });
}

// Servers that may be lost are first asked for an answer.
void ServerShard::Recruit() {
  recruiting_ = false;
  if (role_ != Role::kPrimary || !backup_.empty() || copying_) return;
  const auto worker = NextServer();
  if (!worker.ok()) {
    RecruitLater();
    return;
  }
  recruiting_ = true;
  AskIfThere(*worker,
             [worker = *worker, epoch = epoch_](ServerShard& self, bool there) {
               self.recruiting_ = false;
               if (there && epoch == self.epoch_) {
                 self.CopyTo(worker);
               } else {
                 self.RecruitLater();
               }
             });
}

absl::StatusOr<rpc::WorkerInfo> ServerShard::NextServer() {
  const auto here =
      std::find(servers_.begin(), servers_.end(), agent_.self().name);
  const auto first = static_cast<size_t>(here - servers_.begin());
  for (size_t i = 0; i + 1 < servers_.size(); ++i) {
    const size_t next = first + 1 + asked_++ % (servers_.size() - 1);
    auto found = agent_.Find(servers_[next % servers_.size()]);
    if (found.ok()) return found;
  }
  return absl::NotFoundError("no other server is there");
}

// The copy contains everything that has been acknowledged. Later updates are
// neither sent nor acknowledged before the copy has arrived.
void ServerShard::CopyTo(const rpc::WorkerInfo& worker) {
  if (role_ != Role::kPrimary || !backup_.empty()) return;
  copying_ = true;
  const ShardSpec spec{.options = state_.options(),
                       .shard = shard_,
                       .shards = shards_,
                       .servers = servers_,
                       .cores = cores_,
                       .image = state_.Image()};
  rpc::Create<ServerShard>(agent_, worker, spec, directories_)
      .Then([primary = agent_.self(), epoch = epoch_,
             updates = next_index_](const RRef<ServerShard>& replica) {
        return replica.Async<&ServerShard::Follow>(primary, epoch, updates)
            .Then([replica] { return replica; });
      })
      .OnReady([self = shared_from_this(), epoch = epoch_](
                   const absl::StatusOr<RRef<ServerShard>>& replica) {
        self->Post([epoch, replica](ServerShard& self) {
          if (epoch == self.epoch_ && self.role_ == Role::kPrimary)
            self.OnCopied(replica);
        });
      });
}

void ServerShard::OnCopied(const absl::StatusOr<RRef<ServerShard>>& replica) {
  copying_ = false;
  if (!replica.ok()) {
    LogWarning("shard ", shard_,
               " has no backup yet: ", replica.status().ToString());
    AcknowledgeAll();
    RecruitLater();
    return;
  }
  LogInfo("worker ", replica->owner().name, " is the backup of shard ", shard_,
          " from update ", next_index_, " on");
  backup_ = {*replica};
  for (const auto& [index, entry] : unacknowledged_) SendToBackup(entry.update);
  Enlist();
}

void ServerShard::Enlist() {
  if (role_ != Role::kPrimary || backup_.empty()) return;
  directories_.front()
      .Async<&ServerDirectory::Enlist>(shard_, epoch_, backup_.front())
      .OnReady([self = shared_from_this(),
                epoch = epoch_](const absl::StatusOr<int64_t>& enlisted) {
        self->Post([epoch, status = enlisted.status()](ServerShard& self) {
          // An epoch that this primary asked for is about to begin.
          if (status.ok() || epoch != self.epoch_ || self.asking_) return;
          if (MayAskAgain(status)) {
            self.After(kAskAgain, [](ServerShard& self) { self.Enlist(); });
          } else {
            self.Fence(status);
          }
        });
      });
}

}  // namespace baton::dist
