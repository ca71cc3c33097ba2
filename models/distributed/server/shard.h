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

// The state of a shard as one of its servers sees it.
struct ShardReport {
  bool serves = false;  // whether it is the primary
  int64_t epoch = 0;
  int64_t updates = 0;  // updates of all kinds
  int64_t version = 0;
  int64_t trainers = 0;
  bool has_backup = false;
  int64_t servers_here = 1;  // that may use the same cores, itself among them
  static constexpr auto Fields() {
    using R = ShardReport;
    return std::tuple{&R::serves,      &R::epoch,    &R::updates,
                      &R::version,     &R::trainers, &R::has_backup,
                      &R::servers_here};
  }
};

// A saved shard: its dense part, and the file with its rows if it has tables.
struct SavedShard {
  ShardImage dense;
  std::vector<Shard> files{};
  static constexpr auto Fields() {
    return std::tuple{&SavedShard::dense, &SavedShard::files};
  }
};

// One server's replica of a shard. The primary numbers the changes of the
// shard, sends them to the backup, and acknowledges a change when both have it.
// If the primary's worker is lost, the backup asks the directory for the next
// epoch and serves. A primary that its backup or the directory refuses stops
// serving. A primary without a backup makes one at another server as soon as
// one answers; pushes that arrive while it is being copied wait. A trainer
// whose worker is lost leaves, and is not expected if it has not joined yet.
//
// If a trainer repeats a push because it has no answer, the push counts once,
// even if primary and backup have changed in between. Requests that wait for
// other trainers occupy no thread. A pull that need not wait is read by the
// thread that receives it, concurrently with others. Thread-safe.
class ServerShard : public std::enable_shared_from_this<ServerShard> {
 public:
  static absl::StatusOr<std::shared_ptr<ServerShard>> Make(
      rpc::CallContext& call, const ShardSpec& spec,
      const DirectoryLine& directories);
  ServerShard(rpc::Agent& agent, const ShardSpec& spec,
              DirectoryLine directories);

  // Call one of these once, before all other methods. Serve makes this the
  // primary, with one backup or none. Follow makes it the backup of a primary
  // at that worker, in that epoch, which had `updates` updates when this
  // replica was copied from it.
  void Serve(const std::vector<RRef<ServerShard>>& backup);
  void Follow(const rpc::WorkerInfo& primary, int64_t epoch, int64_t updates);

  // Done when the trainer counts; returns the clock from which on it does.
  // Returns AlreadyExists if another trainer has its rank.
  Future<int64_t> Join(rpc::CallContext& call, TrainerId trainer, int64_t rank);
  // A trainer that joined at different clocks at several shards calls this with
  // the latest of them before it pushes, so that each of its pushes is in the
  // same round everywhere.
  Future<void> Start(TrainerId trainer, int64_t clock);
  Future<void> Leave(TrainerId trainer);
  // Done when the push is at all replicas and, if anything is pulled, when the
  // trainer need not wait for others. Returns Unavailable if this is not the
  // primary, and NotFound for a trainer that has not joined.
  Future<ExchangeReply> Exchange(rpc::CallContext& call,
                                 const ExchangeRequest& request);
  // Begins a pull at one cut of several shards. Returns the version and the cut
  // of the values. Other pushes wait until the caller has pulled with this
  // number (ExchangeRequest::hold); that pull waits for those pushes which the
  // values are to have, and that are let through. Ends after kLongestHold at
  // the latest, and so does the pull.
  Future<ExchangeReply> Hold(rpc::CallContext& call, uint64_t number);
  static constexpr std::chrono::milliseconds kLongestHold{1000};
  // Called by the primary. Aborted means that there is a newer epoch.
  Future<void> Replicate(int64_t epoch, const ShardUpdate& update);
  Future<ShardReport> Report();
  // Takes the state between two updates of the primary; later updates run while
  // it is written.
  Future<SavedShard> Save(const CheckpointDraft& draft, int32_t number);

  // The device for received gradients (rpc::internal::HasDevice).
  Device device() const { return state_.device(); }
  std::optional<DType> dtype() const { return std::nullopt; }

  using Exports =
      rpc::Methods<&ServerShard::Make, rpc::kConcurrent<&ServerShard::Serve>,
                   rpc::kConcurrent<&ServerShard::Follow>,
                   rpc::kConcurrent<&ServerShard::Join>,
                   rpc::kConcurrent<&ServerShard::Start>,
                   rpc::kConcurrent<&ServerShard::Leave>,
                   rpc::kConcurrent<&ServerShard::Hold>,
                   rpc::kConcurrent<&ServerShard::Exchange>,
                   rpc::kConcurrent<&ServerShard::Replicate>,
                   rpc::kConcurrent<&ServerShard::Report>,
                   rpc::kConcurrent<&ServerShard::Save>>;

 private:
  enum class Role : uint8_t { kIdle, kPrimary, kBackup, kFenced };
  using HoldId = std::pair<uint64_t, uint64_t>;  // its worker and number
  struct Waiting {
    ExchangeRequest request;
    HoldId hold{};
    PreparedPush prepared{};
    bool pushed = false;
    Promise<ExchangeReply> promise{};
  };
  using WaitingPtr = std::shared_ptr<Waiting>;
  struct Unacknowledged {
    ShardUpdate update;
    Promise<void> promise{};
  };

  // Everything from here on runs on the strand. A posted function runs after
  // everything that was pushed before it has been applied.
  template <typename Fn>
  void Post(Fn fn) {
    const auto self = shared_from_this();  // outlives the strand's last task
    strand_.Run([self, fn = std::move(fn)]() mutable {
      self->ApplyPushed();
      fn(*self);
    });
  }
  // For asynchronous mode: pushes that arrive while another one is applied are
  // applied together.
  void PostPush(const WaitingPtr& waiting);
  void ApplyPushed();
  // The clocks know of no push that is not applied.
  void ApplyPushedOf(TrainerId trainer);
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
  // Reads on the caller's thread if nothing prevents it.
  std::optional<ExchangeReply> ReadAtOnce(const rpc::CallContext& call,
                                          const ExchangeRequest& request);
  void Admit(const WaitingPtr& waiting);
  // For a pull at a cut: lets the pushes through that it waits for.
  void AdmitHeld(const WaitingPtr& waiting);
  bool IsHeld(const ExchangeRequest& push) const;
  void Release(const HoldId& hold);
  // Whether the request must wait for others before it pulls.
  bool MustWait(const Waiting& waiting) const;
  void Push(const WaitingPtr& waiting);
  void AfterPush(const WaitingPtr& waiting, const Future<void>& taken);
  void OnPushed(const WaitingPtr& waiting, const absl::Status& status);
  void Answer(const WaitingPtr& waiting);
  void Touch(const ExchangeRequest& request);
  bool NeedsTouch(const ExchangeRequest& request) const;
  void Wake();
  // Logs an update that a caller asks for, if this is the primary.
  Future<void> LogOne(const ShardUpdate& update);
  // Numbers and applies an update; done when all replicas have it.
  Future<void> Log(ShardUpdate update);
  void Apply(const ShardUpdate& update);
  // Runs a change of the state; an exception ends this replica.
  void Change(const std::function<void()>& change);
  void SendToBackup(const ShardUpdate& update);
  void OnReplicated(int64_t epoch, int64_t index, const absl::Status& status);
  void AcknowledgeAll();
  void ApplyParked();
  void GoAlone();
  void Promote();
  // Calls then(whether the worker answers).
  void AskIfThere(const rpc::WorkerInfo& worker,
                  std::function<void(ServerShard&, bool)> then);
  void Begin(int64_t epoch);
  void SetRole(Role role);
  // Answers nobody until the directory has decided: another server may have the
  // shard by now.
  void StopServing();
  void Fence(const absl::Status& why);
  void OnMember(const rpc::MemberEvent& event);
  void LetGo(const std::string& worker, uint64_t incarnation);
  // Nobody waits for a trainer that is still expected from the worker.
  void GiveUp(const std::string& worker);
  // Does both for workers that were lost before this became the primary, which
  // had these trainers then.
  void LetGoOfTheLost(const std::map<TrainerId, ServedTrainer>& trainers);
  // After a while, makes a backup if this primary still has none.
  void RecruitLater();
  void Recruit();
  absl::StatusOr<rpc::WorkerInfo> NextServer();
  void CopyTo(const rpc::WorkerInfo& worker);
  void OnCopied(const absl::StatusOr<RRef<ServerShard>>& replica);
  void Enlist();
  // Whether the directory's worker has not answered, so that it or a successor
  // may answer after kAskAgain.
  static bool MayAskAgain(const absl::Status& status);
  static constexpr std::chrono::milliseconds kAskAgain{100};
  // Asks the directory for the next epoch until it answers.
  template <auto kMethod>
  void AskForEpoch();

  rpc::Agent& agent_;
  const int32_t shard_, shards_;
  const std::vector<std::string> servers_, cores_;
  Strand strand_;
  ShardState state_;
  DirectoryLine directories_;  // without those of lost workers, except the last
                               // one
  Role role_ = Role::kIdle;
  absl::Status fenced_;
  int64_t epoch_ = 1;
  bool asking_ = false;   // it asks the directory for the next epoch
  bool cut_off_ = false;  // and none that decides has answered
  // The epoch while this is the primary, else 0. For threads outside of the
  // strand.
  std::atomic<int64_t> served_epoch_ = 0;
  bool recruiting_ = false;
  bool copying_ = false;  // a new backup is being copied; it is sent no updates
                          // yet
  size_t asked_ = 0;      // number of servers asked so far to be the backup
  int64_t next_index_ = 0;
  std::vector<RRef<ServerShard>> backup_;  // for a primary: one or none
  rpc::WorkerInfo primary_;                // for a backup
  std::map<int64_t, Unacknowledged> unacknowledged_;  // by index
  std::map<int64_t, Unacknowledged> parked_;  // for a backup: updates that came
                                              // too early
  std::vector<ShardUpdate> pushed_;           // numbered, but not applied yet
  std::map<TrainerId, Future<void>> last_push_;
  std::vector<WaitingPtr> waiting_;  // for other trainers, or a hold's end
  std::map<HoldId, Cut> holds_;      // and the pushes that each lets through
};

namespace server_calls {
bool Ping();
}  // namespace server_calls

}  // namespace baton::dist
