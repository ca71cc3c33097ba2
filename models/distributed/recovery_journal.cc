// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/checkpoint.h"
#include "core/log.h"
#include "core/status.h"
#include "models/distributed/recovery.h"

// How a trainer that is started again goes on with a training.
namespace baton::dist {
namespace {

// The parts of an entry's state.
constexpr char kNoted[] = "trainer";
constexpr char kRates[] = "rates";

// No step, which is noted before it begins.
bool HasOnlyBegun(const JournalEntry& entry) {
  return entry.step == 0 && PartOf(entry.state, kNoted).empty();
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
  const std::vector<JournalEntry>& found = journal_->found();
  training_ = found.empty() ? NewTraining() : found.back().training;
  if (found.empty()) {
    // Another trainer finds its name before the first step, too.
    options_.epoch = kEpochsOfTrainer;
    RETURN_IF_ERROR(WriteJournal());
  }
  options_.line = absl::StrCat("training ", training_);
  ASSIGN_OR_RETURN(const uint64_t claimed,
                   members_.ClaimedEpoch(options_.line, MembersDeadline()));
  const uint64_t before = std::max(claimed / kEpochsOfTrainer,
                                   found.empty() ? 0 : found.back().trainer);
  options_.epoch = (before + 1) * kEpochsOfTrainer;
  return members_.TakeUp(Claim(true), MembersDeadline());
}

absl::Status RecoverablePipeline::TakeUp() {
  std::vector<JournalEntry> found;
  if (journal_.has_value()) found = journal_->found();
  std::erase_if(found, HasOnlyBegun);
  const int64_t last = found.empty() ? 0 : found.back().step;
  const bool began = !found.empty();
  for (; !found.empty(); found.pop_back()) {
    const auto kept = members_.NewestKept(found.back().step);
    if (!kept || kept->step != found.back().step) continue;
    RETURN_IF_ERROR(Load(kept->step, kept->stores));
    const NamedTensors& state = found.back().state;
    RETURN_IF_ERROR(optimizer_.import_rates(PartOf(state, kRates)));
    resumed_ = {.step = kept->step, .trainer = PartOf(state, kNoted)};
    noted_ = resumed_->trainer;
    next_ = kept->step + 1;
    LogInfo("recovery: the training is taken up after step ", kept->step);
    for (JournalEntry& entry : found) {
      entry.trainer = options_.epoch / kEpochsOfTrainer;
      RETURN_IF_ERROR(journal_->Write(entry));
    }
    return absl::OkStatus();
  }
  // What others than the members still have must not be taken for later states.
  if (journal_.has_value())
    RETURN_IF_ERROR(members_.TakeUp(Claim(false), MembersDeadline()));
  if (began) {
    LogWarning("recovery: no worker has the states after step ", last,
               " any more, to which the journal has come");
  }
  return Load(0, {});
}

absl::Status RecoverablePipeline::WriteJournal() const {
  if (!journal_.has_value()) return absl::OkStatus();
  JournalEntry entry{.training = training_,
                     .trainer = options_.epoch / kEpochsOfTrainer,
                     .step = next_ - 1,
                     .state = AsPart(kNoted, noted_)};
  entry.state.merge(AsPart(kRates, optimizer_.export_rates()));
  return journal_->Write(entry);
}

void RecoverablePipeline::GuardCheckpoints() {
  if (checkpoints_ == nullptr) return;
  std::vector<RRef<StateStore>> stores;
  for (const PipelineMembers::Member& member : members_.all())
    stores.push_back(member.store);
  checkpoints_->set_guard([stores, epoch = options_.epoch] {
    std::vector<Future<void>> checking;
    for (const RRef<StateStore>& store : stores)
      checking.push_back(store.Async<&StateStore::Check>(epoch));
    return WaitAll(checking).Await(kNoLimit);
  });
}

absl::Status RecoverablePipeline::Finish() const {
  return journal_.has_value()
             ? journal_->Clear(options_.epoch / kEpochsOfTrainer)
             : absl::OkStatus();
}

}  // namespace baton::dist
