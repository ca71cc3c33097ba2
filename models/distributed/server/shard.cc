// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/status.h"
#include "models/distributed/server/saved_shards.h"

namespace baton::dist {
namespace {

// Above this size, copying takes longer than handing over to another thread.
constexpr size_t kBriefBytes = 256 << 10;
// A worker may know of another one, and have its calls, for so long before the
// cluster tells all others that it has joined.
constexpr std::chrono::milliseconds kMayBeNews{500};

absl::StatusOr<SavedShard> SaveShard(const CheckpointDraft& draft,
                                     int32_t number,
                                     const ServerOptions& options,
                                     int32_t shard, ShardImage image) {
  const BlockingScope writing;
  SavedShard saved;
  if (!image.tables.empty()) {
    ASSIGN_OR_RETURN(
        saved.files.emplace_back(),
        WriteShard(draft, number, SavedForm(options, shard, image.tables)));
  }
  saved.dense = {.version = image.version,
                 .values = image.values,
                 .slots = std::move(image.slots),
                 .steps = image.steps};
  return saved;
}

size_t BytesOf(const ExchangeReply& reply) {
  size_t bytes = reply.values.defined() ? reply.values.nbytes() : 0;
  for (const Tensor& rows : reply.rows) bytes += rows.nbytes();
  return bytes;
}

}  // namespace

ServerShard::ServerShard(rpc::Agent& agent, const ShardSpec& spec,
                         DirectoryLine directories)
    : agent_(agent),
      shard_(spec.shard),
      shards_(spec.shards),
      servers_(spec.servers),
      cores_(spec.cores),
      state_(spec, agent.self().compute.device),
      directories_(std::move(directories)) {}

void ServerShard::Serve(const std::vector<RRef<ServerShard>>& backup) {
  Post([backup](ServerShard& self) {
    self.backup_ = backup;
    self.SetRole(Role::kPrimary);
  });
}

void ServerShard::Follow(const rpc::WorkerInfo& primary, int64_t epoch,
                         int64_t updates) {
  Post([primary, epoch, updates](ServerShard& self) {
    self.primary_ = primary;
    self.epoch_ = epoch;
    self.next_index_ = updates;
    self.SetRole(Role::kBackup);
  });
}

void ServerShard::SetRole(Role role) {
  role_ = role;
  cut_off_ = false;
  served_epoch_ = role == Role::kPrimary ? epoch_ : 0;
  if (role != Role::kPrimary) return;
  After(kMayBeNews, [trainers = state_.clocks().trainers()](ServerShard& self) {
    self.LetGoOfTheLost(trainers);
  });
}

void ServerShard::StopServing() {
  cut_off_ = true;
  served_epoch_ = 0;
}

absl::Status ServerShard::NotServing() const {
  if (role_ == Role::kPrimary && !cut_off_) return absl::OkStatus();
  std::string why = ", which is its backup";
  if (role_ == Role::kFenced) why = absl::StrCat(": ", fenced_.message());
  if (cut_off_) why = ": it waits for a directory that decides";
  return absl::UnavailableError(absl::StrCat(
      "shard ", shard_, " is not served by worker ", agent_.self().name, why));
}

Future<int64_t> ServerShard::Join(rpc::CallContext& call, TrainerId trainer,
                                  int64_t rank) {
  Promise<int64_t> joined;
  ShardUpdate update{.kind = ShardUpdate::Kind::kJoin, .trainer = trainer};
  update.joining.rank = rank;
  update.joining.worker = call.caller().name;
  update.joining.incarnation = call.caller().incarnation;
  Post([joined, update](ServerShard& self) {
    absl::Status status = self.NotServing();
    for (const auto& [id, other] : self.state_.clocks().trainers()) {
      if (other.rank != update.joining.rank || id == update.trainer) continue;
      status.Update(absl::AlreadyExistsError(
          absl::StrCat("a trainer of rank ", other.rank,
                       " is there, of worker ", other.worker)));
    }
    if (!status.ok()) {
      joined.Set(status);
    } else {
      const Future<void> logged = self.Log(update);
      const int64_t clock = self.state_.clocks().Find(update.trainer)->clock;
      logged.OnReady([joined, clock](const absl::Status& status) {
        if (status.ok()) {
          joined.Set(clock);
        } else {
          joined.Set(status);
        }
      });
    }
  });
  return joined.future();
}

Future<void> ServerShard::Start(TrainerId trainer, int64_t clock) {
  ShardUpdate update{.kind = ShardUpdate::Kind::kStart, .trainer = trainer};
  update.joining.clock = clock;
  return LogOne(update);
}

Future<void> ServerShard::Leave(TrainerId trainer) {
  return LogOne({.kind = ShardUpdate::Kind::kLeave, .trainer = trainer});
}

Future<void> ServerShard::LogOne(const ShardUpdate& update) {
  Promise<void> logged;
  Post([logged, update](ServerShard& self) {
    if (absl::Status status = self.NotServing(); !status.ok()) {
      logged.Set(status);
      return;
    }
    if (update.kind == ShardUpdate::Kind::kLeave)
      self.last_push_.erase(update.trainer);
    self.Log(update).OnReady(
        [logged](const absl::Status& status) { logged.Set(status); });
  });
  return logged.future();
}

absl::Status ServerShard::CheckRequest(const ExchangeRequest& request) const {
  RETURN_IF_ERROR(state_.Check(request.gradients));
  for (const RowKeys& rows : request.rows)
    RETURN_IF_ERROR(
        CheckRowKeys(state_.options(), rows.table, rows.keys, shards_));
  if (request.sequence < 0 ||
      (request.sequence > 0 && request.trainer == kReader)) {
    return absl::InvalidArgumentError("a push has a trainer and a number");
  }
  return absl::OkStatus();
}

Future<ExchangeReply> ServerShard::Exchange(rpc::CallContext& call,
                                            const ExchangeRequest& request) {
  if (absl::Status status = CheckRequest(request); !status.ok())
    return ReadyFuture<ExchangeReply>(status);
  if (auto reply = ReadAtOnce(call, request))
    return ReadyFuture<ExchangeReply>(*std::move(reply));
  auto waiting = std::make_shared<Waiting>();
  waiting->request = request;
  waiting->hold = {call.caller().incarnation, request.hold};
  // Prepare on this thread, concurrently with other trainers. A round is one
  // step, so it is not prepared by push.
  if (request.sequence > 0 &&
      state_.options().mode != Consistency::kBulkSynchronous)
    waiting->prepared = state_.Prepare(request.gradients);
  if (request.sequence > 0 &&
      state_.options().mode == Consistency::kAsynchronous) {
    PostPush(waiting);
  } else if (request.hold > 0) {
    Post([waiting](ServerShard& self) { self.AdmitHeld(waiting); });
  } else {
    Post([waiting](ServerShard& self) { self.Admit(waiting); });
  }
  return waiting->promise.future();
}

std::optional<ExchangeReply> ServerShard::ReadAtOnce(
    const rpc::CallContext& call, const ExchangeRequest& request) {
  const int64_t epoch = served_epoch_;
  if (epoch == 0 || request.sequence > 0 || request.hold > 0 ||
      !state_.MayPull(request.trainer))
    return std::nullopt;
  ExchangeReply reply = state_.Read(
      request, [&](const Shape& shape, const TensorOptions& options) {
        return call.EmptyForCaller(shape, options);
      });
  reply.epoch = epoch;
  if (NeedsTouch(request))
    Post([request](ServerShard& self) {
      if (self.role_ == Role::kPrimary) self.Touch(request);
    });
  return reply;
}

void ServerShard::Admit(const WaitingPtr& waiting) {
  const ExchangeRequest& request = waiting->request;
  const bool pushes = request.sequence > 0 && !waiting->pushed;
  if (pushes) ApplyPushedOf(request.trainer);
  absl::Status status = NotServing();
  if (status.ok() && request.trainer != kReader &&
      state_.clocks().Find(request.trainer) == nullptr) {
    status = absl::NotFoundError(absl::StrCat(
        "trainer ", static_cast<uint64_t>(request.trainer), " is not at shard ",
        shard_, ": it has left, or its worker was lost"));
  }
  if (!status.ok()) {
    waiting->promise.Set(status);
  } else if (pushes) {
    Push(waiting);
  } else {
    Answer(waiting);
  }
}

void ServerShard::Push(const WaitingPtr& waiting) {
  ExchangeRequest& request = waiting->request;
  const ServedTrainer& trainer = *state_.clocks().Find(request.trainer);
  if (request.sequence <= trainer.sequence) {  // a repeated push
    const auto last = last_push_.find(request.trainer);
    AfterPush(waiting, last == last_push_.end()
                           ? ReadyFuture<void>(absl::OkStatus())
                           : last->second);
    return;
  }
  if (IsHeld(request) || !state_.clocks().MayGo(request.trainer)) {
    waiting_.push_back(waiting);
    return;
  }
  const Future<void> taken =
      Log({.kind = ShardUpdate::Kind::kPush,
           .trainer = request.trainer,
           .sequence = request.sequence,
           .gradients = std::exchange(request.gradients, {}),
           .prepared = std::exchange(waiting->prepared, nullptr)});
  last_push_[request.trainer] = taken;
  AfterPush(waiting, taken);
}

void ServerShard::AfterPush(const WaitingPtr& waiting,
                            const Future<void>& taken) {
  // A trainer must not wait for later pushes: the first to be answered is the
  // first to push again.
  if (taken.ready() && pushed_.empty()) {
    OnPushed(waiting, taken.Await());
    return;
  }
  taken.OnReady(
      [self = shared_from_this(), waiting](const absl::Status& status) {
        self->Post([waiting, status](ServerShard& self) {
          self.OnPushed(waiting, status);
        });
      });
}

void ServerShard::OnPushed(const WaitingPtr& waiting,
                           const absl::Status& status) {
  waiting->pushed = true;
  if (status.ok()) {
    Admit(waiting);
  } else {
    waiting->promise.Set(status);
  }
}

void ServerShard::Answer(const WaitingPtr& waiting) {
  const ExchangeRequest& request = waiting->request;
  if (MustWait(*waiting)) {
    waiting_.push_back(waiting);
    return;
  }
  Touch(request);
  ExchangeReply reply = state_.Read(
      request, [](const Shape& shape, const TensorOptions& options) {
        return Tensor::Empty(shape, options);
      });
  reply.epoch = epoch_;
  if (request.hold > 0) Release(waiting->hold);
  if (BytesOf(reply) < kBriefBytes) {
    waiting->promise.Set(std::move(reply));
    return;
  }
  agent_.executor().Post(
      [waiting, reply = std::move(reply)] { waiting->promise.Set(reply); });
}

bool ServerShard::NeedsTouch(const ExchangeRequest& request) const {
  return std::any_of(
      request.rows.begin(), request.rows.end(),
      [&](const RowKeys& rows) { return state_.IsBounded(rows.table); });
}

// Marks the rows that a trainer uses, also at the backup, so that they are not
// forgotten first.
void ServerShard::Touch(const ExchangeRequest& request) {
  if (!NeedsTouch(request)) return;
  Gradients used;
  for (const RowKeys& rows : request.rows) {
    if (!state_.IsBounded(rows.table)) continue;
    used.rows.push_back(
        {.table = rows.table, .keys = rows.keys, .gradients = {}});
  }
  Log({.kind = ShardUpdate::Kind::kTouch,
       .trainer = request.trainer,
       .gradients = std::move(used)})
      .OnReady([](const absl::Status&) {});
}

void ServerShard::Wake() {
  for (const WaitingPtr& waiting : std::exchange(waiting_, {})) Admit(waiting);
}

Future<ShardReport> ServerShard::Report() {
  Promise<ShardReport> promise;
  Post([promise](ServerShard& self) {
    promise.Set(ShardReport{.serves = self.role_ == Role::kPrimary,
                            .epoch = self.epoch_,
                            .updates = self.next_index_,
                            .version = self.state_.version(),
                            .trainers = static_cast<int64_t>(
                                self.state_.clocks().trainers().size()),
                            .has_backup = !self.backup_.empty(),
                            .servers_here = self.state_.servers_here()});
  });
  return promise.future();
}

Future<SavedShard> ServerShard::Save(const CheckpointDraft& draft,
                                     int32_t number) {
  Promise<SavedShard> saved;
  Post([saved, draft, number](ServerShard& self) {
    if (absl::Status status = self.NotServing(); !status.ok()) {
      saved.Set(status);
      return;
    }
    self.agent_.executor().Post([saved, draft, number, shard = self.shard_,
                                 options = self.state_.options(),
                                 image = self.state_.Image()]() mutable {
      saved.Set(SaveShard(draft, number, options, shard, std::move(image)));
    });
  });
  return saved.future();
}

}  // namespace baton::dist
