// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/settings.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/support/saving_flags.h"
#include "tools/command_line.h"

ABSL_FLAG(int, depth, 50, "layers of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int64_t, width, 64, "channels behind the stem");
ABSL_FLAG(int64_t, classes, 1000,
          "classes of the synthetic images; with --data the data's own");
ABSL_FLAG(int64_t, batch, 120, "images of a batch");
ABSL_FLAG(int64_t, image, 128, "height and width of the images");
ABSL_FLAG(int64_t, batches, 3, "batches of one repeat");
ABSL_FLAG(int64_t, repeat, 3, "times that each variant is measured");
ABSL_FLAG(std::string, loss, "",
          "mse (on one-hot labels) or cross_entropy; default mse for synthetic "
          "images, cross_entropy for --data");
ABSL_FLAG(int64_t, seed, 0, "of initial weights, images and their order");
ABSL_FLAG(std::string, data, "",
          "train on these images: a folder of class folders of JPEGs or such "
          "a .tar/.tgz, CIFAR-10 binary files, or IDX files");
ABSL_FLAG(std::string, test_data, "",
          "test images; default: beside --data, with test for train in the "
          "name, where that exists");
ABSL_FLAG(int64_t, epochs, 1, "passes over --data");
ABSL_FLAG(int64_t, limit, 0, "use only so many images an epoch; 0: all");
ABSL_FLAG(int, loader_threads, 1, "threads that read and decode images");

namespace baton::examples {
namespace {

using tools::WrongFlag;

// The value of PyTorch's model-parallel tutorial.
constexpr int64_t kUsualSplitSize = 20;

absl::StatusOr<std::vector<std::string>> CutsInto(int stages) {
  if (auto cuts = EvenCuts(stages)) return *std::move(cuts);
  return WrongFlag("stages", "takes 1 to 4; for more name the --cuts");
}

absl::StatusOr<dist::Loss> LossFlag(bool real_data) {
  const std::string name = absl::GetFlag(FLAGS_loss);
  if (name == "mse" || (name.empty() && !real_data)) return dist::Loss::kMse;
  if (name == "cross_entropy" || name.empty()) return dist::Loss::kCrossEntropy;
  return tools::CheckWord("--loss", name, {"mse", "cross_entropy"});
}

Stepping UsualStepping(bool real_data) {
  if (!real_data) return {};
  return {.optimizer = {.kind = "sgd",
                        .lr = 0.05,
                        .others = {{"momentum", 0.9}, {"weight_decay", 5e-4}}},
          .schedule = "warm-cosine"};
}

absl::Status ReadModel(Settings& settings) {
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_width, FLAGS_classes));
  settings.model.depth = absl::GetFlag(FLAGS_depth);
  settings.model.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
  settings.model.width = absl::GetFlag(FLAGS_width);
  settings.model.num_classes = absl::GetFlag(FLAGS_classes);
  // Reports an error of the model or a cut before any work.
  return models::ResNet::StageUnits(settings.model, settings.cuts, 0).status();
}

absl::Status ReadExperiment(Settings& settings) {
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_image, FLAGS_batches, FLAGS_repeat,
                                 FLAGS_epochs));
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_limit, FLAGS_loader_threads));
  settings.image = absl::GetFlag(FLAGS_image);
  settings.batches = absl::GetFlag(FLAGS_batches);
  settings.repeat = absl::GetFlag(FLAGS_repeat);
  settings.epochs = absl::GetFlag(FLAGS_epochs);
  settings.limit = absl::GetFlag(FLAGS_limit);
  settings.loader_threads = absl::GetFlag(FLAGS_loader_threads);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> SettingsFromFlags() {
  Settings settings;
  PipelineDefaults defaults = {.split_size = kUsualSplitSize, .cuts = CutsInto};
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_batch));
  defaults.batch = absl::GetFlag(FLAGS_batch);
  ASSIGN_OR_RETURN(static_cast<PipelineSettings&>(settings),
                   PipelineSettingsFromFlags(defaults));
  settings.data = absl::GetFlag(FLAGS_data);
  const bool real = !settings.data.empty();
  RETURN_IF_ERROR(ReadModel(settings));
  RETURN_IF_ERROR(ReadExperiment(settings));
  ASSIGN_OR_RETURN(settings.loss, LossFlag(real));
  ASSIGN_OR_RETURN(settings.stepping, SteppingFromFlags(UsualStepping(real)));
  settings.test_data = absl::GetFlag(FLAGS_test_data);
  ASSIGN_OR_RETURN(settings.saving, SavingFromFlags());
  if (real && settings.split_sizes.size() > 1) {
    return WrongFlag("split_size", "takes one size with --data");
  }
  if (!real && settings.stepping.schedule != "constant")
    return WrongFlag("lr_schedule", "is for --data");
  if (!real && (settings.saving.on() || !settings.saving.weights.empty()))
    return WrongFlag("checkpoint_dir", "and --weights are for --data");
  return settings;
}

}  // namespace baton::examples
