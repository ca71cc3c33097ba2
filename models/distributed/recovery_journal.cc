// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/checkpoint.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/recovery.h"
#include "rpc/call_options.h"

// The state that a training continues from when its trainer is restarted or
// returns to a checkpoint.
namespace baton::dist {
namespace {

// The parts of an entry's state.
constexpr char kNoted[] = "trainer";
constexpr char kRates[] = "rates";
constexpr char kSteps[] = "steps";

// Returns the number of committed steps. It differs from entry.step, because
// Keep numbers states, too.
int64_t StepsOf(const JournalEntry& entry) {
  const auto found = entry.state.find(kSteps);
  return found == entry.state.end() ? entry.step
                                    : found->second.ToVector<int64_t>().front();
}

// Returns true for the entry that is written before the first step.
bool HasOnlyBegun(const JournalEntry& entry) {
  return StepsOf(entry) == 0 && PartOf(entry.state, kNoted).empty();
}

// Returns a trainer number greater than `before`. If two trainers take over at
// the same time, the one with the greater number commands all workers.
uint64_t TrainerAfter(uint64_t before, uint64_t incarnation) {
  constexpr uint64_t kAtATime = uint64_t{1} << 16;
  return (before / kAtATime + 1) * kAtATime + incarnation % kAtATime;
}

uint64_t NewTraining() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

StateClaim RecoverablePipeline::Claim(bool takes_up) const {
  return {.pipeline = journal_.has_value() ? options_.line : "",
          .epoch = options_.epoch,
          .takes_up = takes_up,
          .grace_ms = recovery_.grace.count()};
}

absl::Status RecoverablePipeline::OpenJournal() {
  ASSIGN_OR_RETURN(journal_, TrainerJournal::Open(recovery_.journal));
  while (journal_->found().empty()) {
    // The name must be recorded before the first step, because another trainer
    // may take over before that.
    RETURN_IF_ERROR(journal_->Begin(NewTraining()));
    ASSIGN_OR_RETURN(journal_, TrainerJournal::Open(recovery_.journal));
  }
  const JournalEntry& found = journal_->found().back();
  training_ = found.training;
  options_.line = absl::StrCat("training ", training_);
  ASSIGN_OR_RETURN(const uint64_t claimed,
                   members_.ClaimedEpoch(options_.line, MembersDeadline()));
  const uint64_t before = std::max(claimed / kEpochsOfTrainer, found.trainer);
  options_.epoch =
      TrainerAfter(before, agent_.self().incarnation) * kEpochsOfTrainer;
  return ClaimStates(MembersDeadline());
}

absl::Status RecoverablePipeline::ClaimStates(
    std::chrono::steady_clock::time_point deadline) {
  RETURN_IF_ERROR(members_.TakeUp(Claim(true), deadline));
  // The earlier trainer may have written more entries until its workers were
  // claimed, so the journal is read again.
  ASSIGN_OR_RETURN(journal_, TrainerJournal::Open(recovery_.journal));
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::AwaitKeepers() {
  const auto deadline = MembersDeadline();
  for (;;) {
    if (journal_->found().empty()) return absl::OkStatus();
    const JournalEntry& newest = journal_->found().back();
    const auto kept = members_.NewestKept(newest.step);
    if (HasOnlyBegun(newest) || (kept && kept->step == newest.step))
      return absl::OkStatus();
    members_.AddNames(newest.keepers);
    if (!members_.AwaitGivenUp(options_.line, deadline))
      return absl::OkStatus();
    RETURN_IF_ERROR(ClaimStates(deadline));
  }
}

absl::Status RecoverablePipeline::TakeUp() {
  std::vector<JournalEntry> found;
  if (journal_.has_value()) {
    RETURN_IF_ERROR(AwaitKeepers());
    found = journal_->found();
  }
  std::erase_if(found, HasOnlyBegun);
  const int64_t last = found.empty() ? 0 : StepsOf(found.back());
  const bool began = !found.empty();
  for (; !found.empty(); found.pop_back()) {
    const auto kept = members_.NewestKept(found.back().step);
    if (!kept || kept->step != found.back().step) continue;
    RETURN_IF_ERROR(Load(kept->step, kept->stores));
    RETURN_IF_ERROR(safe_->Await(kNoLimit));
    const NamedTensors& state = found.back().state;
    RETURN_IF_ERROR(optimizer_.import_rates(PartOf(state, kRates)));
    steps_ = StepsOf(found.back());
    resumed_ = {.step = steps_, .trainer = PartOf(state, kNoted)};
    noted_ = resumed_->trainer;
    next_ = kept->step + 1;
    LogInfo("recovery: the training is taken up after step ", steps_);
    // This removes all other entries, so its state must be safe by now.
    return WriteJournal(kept->step);
  }
  // The training begins anew: all workers, also those without a place, drop the
  // states that they still keep, which could be mistaken for states of later
  // steps.
  if (journal_.has_value())
    RETURN_IF_ERROR(members_.TakeUp(Claim(false), MembersDeadline()));
  if (began) {
    LogWarning("recovery: no worker has the states after step ", last,
               " any more, to which the journal has come");
  }
  RETURN_IF_ERROR(Load(0, {}));
  RETURN_IF_ERROR(safe_->Await(kNoLimit));
  // Writes an entry now, so that a trainer that takes over before the first
  // step uses a greater epoch.
  return WriteJournal(0);
}

absl::Status RecoverablePipeline::WriteJournal(int64_t number) const {
  if (!journal_.has_value()) return absl::OkStatus();
  const rpc::WorkerInfo& self = agent_.self();
  JournalEntry entry{
      .training = training_,
      .trainer = trainer(),
      .step = number,
      .state = AsPart(kNoted, noted_),
      .writer = absl::StrCat("worker ", self.name, " (incarnation ",
                             self.incarnation, ")")};
  for (const PipelineMembers::Member& member : members_.all())
    entry.keepers.push_back(member.worker.name);
  entry.state.merge(AsPart(kRates, optimizer_.export_rates()));
  entry.state[kSteps] = Tensor::From<int64_t>({steps_});
  return journal_->Write(entry, last_safe_);
}

absl::Status RecoverablePipeline::NoteStep(int64_t last) const {
  if (last == kept_) return WriteJournal(last);
  return journal_.has_value() ? journal_->Check(trainer()) : absl::OkStatus();
}

void RecoverablePipeline::GuardCheckpoints() {
  if (checkpoints_ == nullptr) return;
  std::vector<RRef<StateStore>> stores;
  for (const PipelineMembers::Member& member : members_.all())
    stores.push_back(member.store);
  checkpoints_->set_guard([stores, epoch = options_.epoch, journal = journal_,
                           trainer = trainer()]() -> absl::Status {
    if (journal.has_value()) RETURN_IF_ERROR(journal->Check(trainer));
    std::vector<Future<void>> checking;
    for (const RRef<StateStore>& store : stores)
      checking.push_back(store.Async<&StateStore::Check>(epoch));
    return WaitAll(checking).Await(kNoLimit);
  });
}

absl::Status RecoverablePipeline::Keep() {
  RETURN_IF_ERROR(NoneUnderWay());
  absl::Status kept = KeepAnew();
  if (absl::IsPermissionDenied(kept)) return status_ = kept;
  // Some workers may have stored the state, so the recovery must replace it.
  if (!kept.ok()) RETURN_IF_ERROR(Recover(kept, nullptr));
  return kept;
}

absl::Status RecoverablePipeline::KeepAnew() {
  if (safe_.has_value()) {
    RETURN_IF_ERROR(safe_->Await(kNoLimit));
    last_safe_ = kept_;
  }
  // Uses a number that no other state has, including states that a failed step
  // may have left at some worker: so states of two histories are never
  // combined, and the journal's entry describes this one.
  const int64_t number = next_ + static_cast<int64_t>(Pipeline::kMostUnderWay);
  RETURN_IF_ERROR(WriteJournal(number));
  RETURN_IF_ERROR(Load(number, {}));
  RETURN_IF_ERROR(safe_->Await(kNoLimit));
  batches_.clear();
  next_ = number + 1;
  return absl::OkStatus();
}

absl::Status RecoverablePipeline::GoBackToCheckpoint() {
  auto resumed = checkpoints_->Resume(IfBroken::kUsePrevious);
  const bool none = absl::IsNotFound(resumed.status());
  if (none || absl::IsDataLoss(resumed.status())) {
    status_ = absl::DataLossError(absl::StrCat(
        "a worker was lost together with the one that kept its state, and ",
        none ? "there is no checkpoint yet"
             : absl::StrCat("all checkpoints are broken: ",
                            resumed.status().message())));
    return status_;
  }
  RETURN_IF_ERROR(resumed.status());
  noted_ = resumed->trainer;
  RETURN_IF_ERROR(KeepAnew());
  resumed_ = *std::move(resumed);
  ++returns_;
  const absl::Status lost = absl::DataLossError(
      absl::StrCat("a worker was lost together with the one that kept its "
                   "state: the training has gone back to the checkpoint of "
                   "step ",
                   resumed_->step));
  LogWarning("recovery: ", lost.message());
  return lost;
}

absl::Status RecoverablePipeline::Finish() const {
  return journal_.has_value() ? journal_->Clear(trainer()) : absl::OkStatus();
}

}  // namespace baton::dist
