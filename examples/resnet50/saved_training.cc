// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/saved_training.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::examples {
namespace {

constexpr char kLoader[] = "loader";
constexpr char kCounts[] = "progress.counts";
constexpr char kLossSum[] = "progress.loss_sum";

NamedTensors ToTensors(const TrainingProgress& progress) {
  return {
      {kCounts, Tensor::From<int64_t>({progress.steps, progress.images})},
      {kLossSum, Tensor::From<double>({progress.loss_sum})},
  };
}

absl::StatusOr<TrainingProgress> ToProgress(const NamedTensors& tensors) {
  const auto counts = tensors.find(kCounts), loss = tensors.find(kLossSum);
  if (counts == tensors.end() || loss == tensors.end() ||
      counts->second.numel() != 2) {
    return absl::InvalidArgumentError(
        "the checkpoint is not of a training on images");
  }
  const auto numbers = counts->second.ToVector<int64_t>();
  return TrainingProgress{.steps = numbers[0],
                          .images = numbers[1],
                          .loss_sum = loss->second.Item()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SavedTraining>> SavedTraining::Make(
    const Saving& saving, RemoteResNet& model, data::Loader& loader) {
  RETURN_IF_ERROR(PrepareToSave(saving));
  std::unique_ptr<SavedTraining> training(
      new SavedTraining(saving, model, loader));
  ASSIGN_OR_RETURN(training->checkpoints_,
                   model.MakeCheckpointer(saving.checkpoints));
  return training;
}

absl::Status SavedTraining::GoOnFrom(const NamedTensors& position) {
  ASSIGN_OR_RETURN(progress_, ToProgress(position));
  return loader_.ImportState(PartOf(position, kLoader));
}

absl::Status SavedTraining::Begin() {
  if (const auto taken_up = model_.resumed()) {
    RETURN_IF_ERROR(GoOnFrom(taken_up->trainer));
    std::printf("taken up after step %d\n", static_cast<int>(progress_.steps));
    return absl::OkStatus();
  }
  if (saving_.on() && saving_.resume != Saving::Resume::kNo) {
    const auto resumed = checkpoints_->Resume(saving_.if_broken());
    if (resumed.ok()) {
      std::printf("resumed from step %d\n", static_cast<int>(resumed->step));
      RETURN_IF_ERROR(GoOnFrom(resumed->trainer));
      return model_.Keep(resumed->trainer);
    }
    if (!absl::IsNotFound(resumed.status())) return resumed.status();
  }
  if (saving_.weights.empty()) return absl::OkStatus();
  const absl::Status loaded = checkpoints_->LoadWeights(saving_.weights);
  if (absl::IsNotFound(loaded)) return absl::OkStatus();
  RETURN_IF_ERROR(loaded);
  std::printf("weights from %s\n", saving_.weights.c_str());
  return model_.Keep(Position());
}

absl::Status SavedTraining::GoBack(const absl::Status& why) {
  const dist::RecoverablePipeline* pipeline = model_.recovered();
  if (pipeline == nullptr) return why;
  if (absl::IsDataLoss(pipeline->status())) {
    return absl::DataLossError(
        absl::StrCat(why.message(),
                     ": start the training again; --checkpoint_dir and "
                     "--save_every make checkpoints to go back to"));
  }
  if (pipeline->returns() == returns_) return why;
  returns_ = pipeline->returns();
  RETURN_IF_ERROR(GoOnFrom(pipeline->resumed()->trainer));
  std::printf("gone back to the checkpoint of step %d\n",
              static_cast<int>(progress_.steps));
  return absl::OkStatus();
}

void SavedTraining::Count(double loss, int64_t images) {
  ++progress_.steps;
  progress_.images += images;
  progress_.loss_sum += loss * static_cast<double>(images);
}

bool SavedTraining::IsDue(int64_t steps) const {
  return saving_.every > 0 && (progress_.steps + steps) % saving_.every == 0;
}

absl::Status SavedTraining::AfterEpoch(bool last) {
  loader_.StartEpoch(loader_.epoch() + 1);
  progress_.images = 0;
  progress_.loss_sum = 0;
  if (!saving_.on()) return absl::OkStatus();
  const bool exported = !saving_.weights.empty();
  if (!last && !exported) return saving_.every == 0 ? Save() : absl::OkStatus();
  RETURN_IF_ERROR(Write());
  RETURN_IF_ERROR(checkpoints_->Wait());
  if (!exported) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const Checkpoint saved,
      Checkpoint::Open(saving_.checkpoints.folder, progress_.steps));
  return ExportPart(saved, dist::kModelPart, saving_.weights);
}

absl::Status SavedTraining::Save() {
  const absl::Status written = Write();
  if (model_.recovered() == nullptr || !absl::IsUnavailable(written))
    return written;
  std::printf("no checkpoint of step %d: %s\n",
              static_cast<int>(progress_.steps), written.ToString().c_str());
  return absl::OkStatus();
}

absl::Status SavedTraining::Write() {
  return checkpoints_->Save(progress_.steps, Position());
}

void SavedTraining::Note() { model_.Note(Position()); }

NamedTensors SavedTraining::Position() const {
  NamedTensors position = ToTensors(progress_);
  position.merge(AsPart(kLoader, loader_.ExportState()));
  return position;
}

}  // namespace baton::examples
