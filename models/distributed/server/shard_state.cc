// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard_state.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/compute_threads.h"
#include "core/ops/rows.h"
#include "core/status.h"
#include "models/distributed/server/compression.h"
#include "models/distributed/server/step_threads.h"

namespace baton::dist {
namespace {

int ServersHere(const std::vector<std::string>& cores) {
  return static_cast<int>(std::max<int64_t>(
      1, std::count(cores.begin(), cores.end(), CoresHere())));
}

std::vector<std::unique_ptr<ShardTable>> TablesOf(const ShardSpec& spec,
                                                  Device device) {
  const std::vector<RowTableImage>& images = spec.image.tables;
  std::vector<std::unique_ptr<ShardTable>> tables;
  for (const RowTableOptions& table : spec.options.tables) {
    const size_t at = tables.size();
    tables.push_back(
        ShardTable::Make(table, spec.shard, spec.shards, device,
                         at < images.size() ? images[at] : RowTableImage{}));
  }
  return tables;
}

}  // namespace

ShardState::ShardState(const ShardSpec& spec, Device device)
    : options_(spec.options),
      shards_(spec.shards),
      servers_here_(ServersHere(spec.cores)),
      device_(device),
      reads_(Stream::Next(device)),
      shape_(spec.image.values.shape()),
      stepper_(spec.options.rule, shape_, device, spec.image.slots,
               spec.image.steps),
      round_(spec.image.round),
      clocks_(spec.options, spec.image.clocks),
      tables_(TablesOf(spec, device)) {
  const ShardImage& image = spec.image;
  const WriterLock lock(mutex_);
  dense_ = {.version = image.version,
            .values = image.values.To(device).Contiguous()};
}

ShardImage ShardState::Image() const {
  const ReaderLock lock(mutex_);
  ShardImage image{.version = dense_.version,
                   .values = dense_.values,
                   .slots = stepper_.CopyOfSlots(),
                   .steps = stepper_.steps(),
                   .clocks = clocks_.readings(),
                   .round = round_};
  for (const auto& table : tables_) image.tables.push_back(table->Image());
  return image;
}

absl::Status ShardState::Check(const Gradients& gradients) const {
  RETURN_IF_ERROR(CheckDense(gradients));
  for (const RowGradients& rows : gradients.rows)
    RETURN_IF_ERROR(CheckRowGradients(options_, rows, shards_));
  return absl::OkStatus();
}

absl::Status ShardState::CheckDense(const Gradients& gradients) const {
  const Tensor& dense = gradients.dense;
  const Tensor& index = gradients.index;
  if (!dense.defined()) return absl::OkStatus();
  if (index.defined()) {
    if (dense.dtype() != DType::kF32 || dense.rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "some gradients of a shard are f32 [n], not ", dense.ToString()));
    }
    return CatchErrors([&] {
      ops::RequireRows(
          "push", {shape_.numel(), 1},
          {.index = index, .values = dense.Reshape({dense.numel(), 1})});
    });
  }
  if (dense.shape() == shape_ &&
      (dense.dtype() == DType::kF32 || dense.dtype() == DType::kBF16))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of this shard are f32 or bf16", shape_.ToString(),
                   ", not ", dense.ToString()));
}

void ShardState::Apply(const ShardUpdate& update) {
  switch (update.kind) {
    case ShardUpdate::Kind::kJoin: {
      const WriterLock lock(mutex_);
      clocks_.Join(update.trainer, update.joining);
      break;
    }
    case ShardUpdate::Kind::kLeave: {
      const WriterLock lock(mutex_);
      clocks_.Leave(update.trainer);
      break;
    }
    case ShardUpdate::Kind::kGiveUp: {
      const WriterLock lock(mutex_);
      clocks_.GiveUp(update.joining.worker);
      break;
    }
    case ShardUpdate::Kind::kStart: {
      const WriterLock lock(mutex_);
      clocks_.Start(update.trainer, update.joining.clock);
      break;
    }
    case ShardUpdate::Kind::kPush:
      if (options_.mode == Consistency::kBulkSynchronous) {
        TakeIntoRound(update);
      } else {
        ApplyPushes({update});
      }
      break;
    case ShardUpdate::Kind::kTouch:
      ApplyTouch(update.gradients);
      break;
  }
  // The round may have waited only for the trainer that has left.
  if (options_.mode != Consistency::kBulkSynchronous || !clocks_.RoundIsWhole())
    return;
  std::vector<Gradients> all;
  for (auto& [rank, gradients] : round_) all.push_back(std::move(gradients));
  round_.clear();
  StepBy({WorkOf(all)},
         options_.average ? 1.0 / static_cast<double>(all.size()) : 1.0,
         [this] { clocks_.EndRound(); });
}

void ShardState::TakeIntoRound(const ShardUpdate& push) {
  const ServedTrainer* trainer = clocks_.Find(push.trainer);
  if (trainer == nullptr) return;
  round_[{trainer->rank, push.trainer}] = push.gradients;
  const WriterLock lock(mutex_);
  clocks_.Count(push.trainer, push.sequence);
}

void ShardState::ApplyPushes(const std::vector<ShardUpdate>& pushes) {
  std::vector<StepWork> steps;
  for (const ShardUpdate& push : pushes)
    if (clocks_.Find(push.trainer) != nullptr)
      steps.push_back(WorkOf({push.gradients}, push.prepared));
  if (steps.empty()) return;
  StepBy(steps, 1, [&] {
    for (const ShardUpdate& push : pushes)
      if (clocks_.Find(push.trainer) != nullptr)
        clocks_.Count(push.trainer, push.sequence);
  });
}

void ShardState::ApplyTouch(const Gradients& used) {
  const WriterLock lock(mutex_);
  for (const RowGradients& rows : used.rows) {
    ShardTable& table = *tables_[static_cast<size_t>(rows.table)];
    table.Touch(PlacedOn(table.key_device(), rows.keys));
  }
}

PreparedPush ShardState::Prepare(const Gradients& gradients) const {
  return gradients.rows.empty() ? nullptr : PrepareRows({gradients});
}

PreparedPush ShardState::PrepareRows(
    const std::vector<Gradients>& summed) const {
  std::map<size_t, std::vector<RowGradients>> of_tables;
  for (const Gradients& given : summed)
    for (const RowGradients& rows : given.rows)
      of_tables[static_cast<size_t>(rows.table)].push_back(rows);
  auto prepared = std::make_shared<PreparedTables>();
  for (auto& [table, gradients] : of_tables)
    prepared->emplace_back(table,
                           tables_[table]->Prepare(std::move(gradients)));
  return prepared;
}

ShardState::StepWork ShardState::WorkOf(const std::vector<Gradients>& summed,
                                        PreparedPush rows) const {
  StepWork work{.dense = {}, .rows = std::move(rows)};
  for (const Gradients& given : summed)
    if (given.dense.defined())
      work.dense.push_back(Expand(given, shape_.numel(), device_));
  if (work.rows == nullptr) work.rows = PrepareRows(summed);
  return work;
}

// Dense values are stepped before the tables' readers are excluded.
void ShardState::StepBy(const std::vector<StepWork>& steps, double scale,
                        const std::function<void()>& count) {
  const ComputeThreadsScope threads(StepThreadsHere(options_, servers_here_));
  const LoopThread::Scope loops(loops_);
  DenseStepper::Steps dense;
  for (const StepWork& step : steps)
    if (!step.dense.empty()) dense.push_back(step.dense);
  const Tensor after = stepper_.Step(values(), dense, scale);
  std::map<size_t, ShardTable::Steps> of_tables;
  for (const StepWork& step : steps)
    for (const auto& [table, rows] : *step.rows)
      of_tables[table].push_back(rows.get());
  const WriterLock lock(mutex_);
  for (const auto& [table, rows] : of_tables) tables_[table]->Step(rows, scale);
  dense_ = {.version = dense_.version + static_cast<int64_t>(steps.size()),
            .values = after};
  count();
}

Tensor ShardState::values() const {
  const ReaderLock lock(mutex_);
  return dense_.values;
}

int64_t ShardState::version() const {
  const ReaderLock lock(mutex_);
  return dense_.version;
}

bool ShardState::MayPull(TrainerId trainer) const {
  const ReaderLock lock(mutex_);
  return trainer == kReader ||
         (clocks_.Find(trainer) != nullptr && clocks_.MayGo(trainer));
}

ExchangeReply ShardState::Read(const ExchangeRequest& request,
                               const Empty& empty) const {
  const StreamScope stream(reads_);
  ExchangeReply reply;
  std::vector<Tensor> keys;
  for (const RowKeys& rows : request.rows) {
    const auto number = static_cast<size_t>(rows.table);
    const ShardTable& table = *tables_[number];
    keys.push_back(PlacedOn(table.key_device(), rows.keys));
    reply.rows.push_back(
        empty({rows.keys.numel(), options_.tables[number].width},
              {.device = table.device()}));
  }
  const ReaderLock lock(mutex_);
  reply.version = dense_.version;
  reply.slowest = clocks_.Slowest();
  const ServedTrainer* trainer = clocks_.Find(request.trainer);
  if (trainer != nullptr) reply.clock = trainer->clock;
  if (request.values) reply.values = dense_.values;
  if (request.cut) reply.cut = clocks_.cut();
  for (size_t i = 0; i < keys.size(); ++i) {
    tables_[static_cast<size_t>(request.rows[i].table)]->Read(keys[i],
                                                              reply.rows[i]);
  }
  return reply;
}

bool ShardState::IsBounded(int32_t table) const {
  return options_.tables[static_cast<size_t>(table)].limit > 0;
}

}  // namespace baton::dist
