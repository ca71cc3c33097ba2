// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint.h"
#include "core/future.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/shard_state.h"
#include "models/distributed/server/strand.h"
#include "rpc/agent.h"

namespace baton::dist {

// A shard as one of its servers sees it.
struct ShardReport {
  bool serves = false;  // as the primary
  int64_t epoch = 0;
  int64_t updates = 0;  // all kinds
  int64_t version = 0;
  int64_t trainers = 0;
  bool has_backup = false;
  static constexpr auto Fields() {
    using R = ShardReport;
    return std::tuple{&R::serves,  &R::epoch,    &R::updates,
                      &R::version, &R::trainers, &R::has_backup};
  }
};

// A shard as it was saved: its dense part, and the file with its rows, where it
// has tables.
struct SavedShard {
  ShardImage dense;
  std::vector<Shard> files{};
  static constexpr auto Fields() {
    return std::tuple{&SavedShard::dense, &SavedShard::files};
  }
};

// One server's replica of a shard. The primary numbers what changes the shard,
// sends it to the backup, and acknowledges it when both have it. When the
// primary's worker is lost the backup asks the directory for the next epoch and
// serves; a primary that is refused by its backup, or by the directory, serves
// nobody any more. A primary without a backup makes one at
// another of the servers, as soon as one answers; what is pushed while that is
// sent a copy waits for it. A trainer whose worker is lost leaves.
//
// A push that a trainer repeats, as it does when it has no answer, counts once,
// also where primary and backup have changed between. What waits for other
// trainers waits without a thread; what pulls and need not wait is read by the
// thread that brings it, beside others. Thread-safe.
class ServerShard : public std::enable_shared_from_this<ServerShard> {
 public:
  static absl::StatusOr<std::shared_ptr<ServerShard>> Make(
      rpc::CallContext& call, const ShardSpec& spec,
      const DirectoryLine& directories);
  ServerShard(rpc::Agent& agent, const ShardSpec& spec,
              DirectoryLine directories);

  // First of all, and once: as the primary, with one backup or none, or as the
  // backup of a primary at that worker, which is in that epoch and has had so
  // many updates when it copied what this replica was made of.
  void Serve(const std::vector<RRef<ServerShard>>& backup);
  void Follow(const rpc::WorkerInfo& primary, int64_t epoch, int64_t updates);

  // Done when the trainer counts. AlreadyExists where another one has its rank.
  Future<void> Join(rpc::CallContext& call, TrainerId trainer, int64_t rank);
  Future<void> Leave(TrainerId trainer);
  // Done when the push is at all replicas and, if anything is pulled, when the
  // trainer need not wait for others. Unavailable where this is not the
  // primary, NotFound for a trainer that is not there.
  Future<ExchangeReply> Exchange(rpc::CallContext& call,
                                 const ExchangeRequest& request);
  // By the primary. Aborted: there is a newer epoch.
  Future<void> Replicate(int64_t epoch, const ShardUpdate& update);
  Future<ShardReport> Report();
  // Between two updates of the primary, which others then go on beside.
  Future<SavedShard> Save(const CheckpointDraft& draft, int32_t number);

  // Where gradients come to (rpc::internal::HasDevice).
  Device device() const { return state_.device(); }
  std::optional<DType> dtype() const { return std::nullopt; }

  using Exports =
      rpc::Methods<&ServerShard::Make, rpc::kConcurrent<&ServerShard::Serve>,
                   rpc::kConcurrent<&ServerShard::Follow>,
                   rpc::kConcurrent<&ServerShard::Join>,
                   rpc::kConcurrent<&ServerShard::Leave>,
                   rpc::kConcurrent<&ServerShard::Exchange>,
                   rpc::kConcurrent<&ServerShard::Replicate>,
                   rpc::kConcurrent<&ServerShard::Report>,
                   rpc::kConcurrent<&ServerShard::Save>>;

 private:
  enum class Role : uint8_t { kIdle, kPrimary, kBackup, kFenced };
  struct Waiting {
    ExchangeRequest request;
    PreparedPush prepared{};
    bool pushed = false;
    Promise<ExchangeReply> promise{};
  };
  using WaitingPtr = std::shared_ptr<Waiting>;
  struct Unacknowledged {
    ShardUpdate update;
    Promise<void> promise{};
  };

  // All from here on runs on the strand. What is posted finds all that was
  // pushed before it applied.
  template <typename Fn>
  void Post(Fn fn) {
    const auto self = shared_from_this();  // outlives the strand's last task
    strand_.Run([self, fn = std::move(fn)]() mutable {
      self->ApplyPushed();
      fn(*self);
    });
  }
  // Of asynchronous mode, where pushes that came while another one was applied
  // are applied together.
  void PostPush(const WaitingPtr& waiting);
  void ApplyPushed();
  template <typename Fn>
  void After(std::chrono::milliseconds delay, Fn fn) {
    agent_.timer().After(delay, [weak = weak_from_this(), fn] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->agent_.executor().Post([self, fn] { self->Post(fn); });
    });
  }
  absl::Status NotServing() const;
  absl::Status CheckRequest(const ExchangeRequest& request) const;
  // By the caller's thread, where nothing keeps it from that.
  std::optional<ExchangeReply> ReadAtOnce(const rpc::CallContext& call,
                                          const ExchangeRequest& request);
  void Admit(const WaitingPtr& waiting);
  void Push(const WaitingPtr& waiting);
  void AfterPush(const WaitingPtr& waiting, const Future<void>& taken);
  void OnPushed(const WaitingPtr& waiting, const absl::Status& status);
  void Answer(const WaitingPtr& waiting);
  void Touch(const ExchangeRequest& request);
  bool NeedsTouch(const ExchangeRequest& request) const;
  void Wake();
  // Numbers and applies an update; ready when all replicas have it.
  Future<void> Log(ShardUpdate update);
  void Apply(const ShardUpdate& update);
  // Runs what changes the state; one that throws ends this replica.
  void Change(const std::function<void()>& change);
  void SendToBackup(const ShardUpdate& update);
  void OnReplicated(int64_t epoch, int64_t index, const absl::Status& status);
  void AcknowledgeAll();
  void ApplyParked();
  void GoAlone();
  void Promote();
  // then(whether the worker answers).
  void AskIfThere(const rpc::WorkerInfo& worker,
                  std::function<void(ServerShard&, bool)> then);
  void Begin(int64_t epoch);
  void SetRole(Role role);
  void Fence(const absl::Status& why);
  void OnMember(const rpc::MemberEvent& event);
  void LetGo(const std::string& worker, uint64_t incarnation);
  void LetGoOfTheLost();
  // After a while, while this primary has no backup: makes one.
  void RecruitLater();
  void Recruit();
  absl::StatusOr<rpc::WorkerInfo> NextServer();
  void CopyTo(const rpc::WorkerInfo& worker);
  void OnCopied(const absl::StatusOr<RRef<ServerShard>>& replica);
  void Enlist();
  // The directory's worker has not answered, and it, or one that follows it,
  // may do so after kAskAgain.
  static bool MayAskAgain(const absl::Status& status);
  static constexpr std::chrono::milliseconds kAskAgain{100};
  // Asks the directory for the next epoch until it answers.
  template <auto kMethod>
  void AskForEpoch();

  rpc::Agent& agent_;
  const int32_t shard_, shards_;
  const std::vector<std::string> servers_;
  Strand strand_;
  ShardState state_;
  DirectoryLine directories_;  // of workers that are there, but for the last
  Role role_ = Role::kIdle;
  absl::Status fenced_;
  int64_t epoch_ = 1;
  bool asking_ = false;  // the directory for the next epoch
  // The epoch, while this is the primary; else 0. For threads beside the
  // strand.
  std::atomic<int64_t> served_epoch_ = 0;
  bool recruiting_ = false;
  bool copying_ = false;  // to a new backup, which is sent no updates yet
  size_t asked_ = 0;      // servers, so far, whether they can be the backup
  int64_t next_index_ = 0;
  std::vector<RRef<ServerShard>> backup_;  // of a primary: one or none
  rpc::WorkerInfo primary_;                // of a backup
  std::map<int64_t, Unacknowledged> unacknowledged_;  // by index
  std::map<int64_t, Unacknowledged> parked_;  // at a backup: came too early
  std::vector<ShardUpdate> pushed_;           // numbered, and not applied yet
  std::map<TrainerId, Future<void>> last_push_;
  std::vector<WaitingPtr> waiting_;  // for other trainers
};

namespace server_calls {
bool Ping();
}  // namespace server_calls

}  // namespace baton::dist
