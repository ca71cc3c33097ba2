// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/ops/indexing.h"
#include "core/status.h"
#include "examples/resnet50/remote_resnet.h"
#include "examples/resnet50/saved_training.h"
#include "examples/support/planning.h"
#include "examples/support/progress.h"
#include "examples/support/train_steps.h"
#include "examples/support/training_log.h"
#include "models/data/loader.h"
#include "models/data/open.h"
#include "models/data/transforms.h"

namespace baton::examples {
namespace {

constexpr int64_t kSmallImage = 64;

struct EpochResult {
  int64_t epoch = 0;
  double loss = 0;       // mean over the epoch
  double accuracy = -1;  // on the test images; -1: there are none
  double seconds = 0;    // of training
  int64_t images = 0;
};

struct Data {
  std::unique_ptr<data::Loader> train;
  std::unique_ptr<data::Loader> test;  // null: no test images
};

// Returns the transform for images of size x size pixels with one or three
// channels.
data::Transform SmallImages(int64_t channels, int64_t size, bool training) {
  if (channels == 3 && size == 32) {
    return training ? data::CifarTraining() : data::CifarTesting();
  }
  std::vector<data::Transform> steps = {data::Resize(size, size)};
  if (training) steps.push_back(data::RandomCrop(size, size, size / 8));
  const std::vector<float> half(static_cast<size_t>(channels), 0.5f);
  steps.push_back(data::Normalize(half, half));
  return data::Compose(std::move(steps));
}

absl::StatusOr<std::unique_ptr<data::Loader>> OpenLoader(
    const Settings& settings, const std::string& path, data::Split split,
    bool training) {
  ASSIGN_OR_RETURN(auto dataset, data::OpenDataset(path, split));
  data::LoaderOptions options;
  options.batch = settings.batch;
  options.shuffle = training;
  options.drop_last = training && dataset->size() >= settings.batch;
  options.seed = settings.model.seed;
  options.workers = settings.loader_threads;
  if (settings.model.cifar_stem) {
    options.transform =
        SmallImages(settings.model.in_channels, settings.image, training);
  } else {
    options.transform = training ? data::ImageNetTraining(settings.image)
                                 : data::ImageNetTesting(settings.image);
  }
  return data::Loader::Make(std::move(dataset), std::move(options));
}

// Classes are numbered by name, so both data sets must have the same classes.
absl::Status CheckClasses(const std::string& path, const data::Dataset& test,
                          const data::Dataset& training) {
  const std::vector<std::string>& names = training.classes();
  const std::vector<std::string>& tested = test.classes();
  if (tested.size() <= names.size() &&
      std::equal(tested.begin(), tested.end(), names.begin())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": its ", tested.size(), " classes are not the ",
                   names.size(), " of the training images"));
}

// Adapts the model to the images and opens both parts of the data.
absl::StatusOr<Data> OpenData(Settings& settings) {
  ASSIGN_OR_RETURN(auto probe,
                   data::OpenDataset(settings.data, data::Split::kTrain));
  ASSIGN_OR_RETURN(const data::Sample first, probe->Get(0));
  const bool small = first.image.dim(1) <= kSmallImage;
  settings.model.num_classes = static_cast<int64_t>(probe->classes().size());
  settings.model.in_channels = first.image.dim(0);
  settings.model.cifar_stem = small;
  if (small) settings.image = first.image.dim(1);
  Data data;
  ASSIGN_OR_RETURN(data.train, OpenLoader(settings, settings.data,
                                          data::Split::kTrain, true));
  std::string test = settings.test_data;
  if (test.empty()) test = TestDataBeside(settings.data);
  if (!test.empty()) {
    ASSIGN_OR_RETURN(data.test,
                     OpenLoader(settings, test, data::Split::kTest, false));
    RETURN_IF_ERROR(CheckClasses(test, data.test->dataset(), *probe));
  }
  return data;
}

TrainingBatch ToTrainingBatch(const Settings& settings,
                              const data::Batch& batch) {
  return {batch.images,
          settings.loss == dist::Loss::kMse
              ? ops::OneHot(batch.labels, settings.model.num_classes)
              : batch.labels};
}

// Returns the number of batches in an epoch, limited by --limit.
int64_t BatchesOf(const Settings& settings, const data::Loader& loader) {
  if (settings.limit == 0) return loader.batches();
  const int64_t wanted = (settings.limit + settings.batch - 1) / settings.batch;
  return std::min(wanted, loader.batches());
}

// Trains on the rest of the loader's epoch.
absl::StatusOr<EpochResult> TrainEpoch(const Settings& settings,
                                       data::Loader& loader,
                                       RemoteResNet& model,
                                       SavedTraining& saved, TrainingLog& log) {
  const auto begin = std::chrono::steady_clock::now();
  EpochResult result;
  result.epoch = loader.epoch();
  const int64_t batches = BatchesOf(settings, loader);
  Progress progress(
      absl::StrCat("epoch ", result.epoch + 1, "/", settings.epochs), "images",
      batches - loader.batch());
  TrainSteps steps(model, [&](const TrainSteps::Done& step) {
    result.images += step.rows;
    progress.Step(step.loss, step.rows);
    log.Step(step.loss, step.rows);
    saved.Count(step.loss, step.rows);
    return absl::OkStatus();
  });
  while (loader.batch() < batches) {
    if (!settings.journal.empty()) {
      RETURN_IF_ERROR(steps.Finish());
      saved.Note();
    }
    ASSIGN_OR_RETURN(const std::optional<data::Batch> batch, loader.Next());
    if (!batch.has_value()) break;
    RETURN_IF_ERROR(steps.Begin(ToTrainingBatch(settings, *batch)));
    if (!saved.IsDue(steps.under_way())) continue;
    RETURN_IF_ERROR(steps.Finish());
    RETURN_IF_ERROR(saved.Save());
  }
  RETURN_IF_ERROR(steps.Finish());
  result.loss =
      saved.progress().loss_sum /
      static_cast<double>(std::max<int64_t>(saved.progress().images, 1));
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return result;
}

absl::StatusOr<double> TestAccuracy(const Settings& settings,
                                    data::Loader& loader, RemoteResNet& model) {
  double correct = 0;
  int64_t images = 0;
  const int64_t batches = BatchesOf(settings, loader);
  loader.StartEpoch(0);
  for (int64_t i = 0; i < batches; ++i) {
    ASSIGN_OR_RETURN(const std::optional<data::Batch> batch, loader.Next());
    if (!batch.has_value()) break;
    ASSIGN_OR_RETURN(const dist::Pipeline::EvalResult result,
                     model.Evaluate(ToTrainingBatch(settings, *batch)));
    correct += result.accuracy * static_cast<double>(batch->size());
    images += batch->size();
  }
  return correct / static_cast<double>(std::max<int64_t>(images, 1));
}

// Trains on the rest of the epoch, then measures the accuracy on the test
// images.
absl::StatusOr<EpochResult> TrainAndTest(const Settings& settings,
                                         const Data& data, RemoteResNet& model,
                                         SavedTraining& saved,
                                         TrainingLog& log) {
  ASSIGN_OR_RETURN(EpochResult result,
                   TrainEpoch(settings, *data.train, model, saved, log));
  if (data.test != nullptr) {
    ASSIGN_OR_RETURN(result.accuracy,
                     TestAccuracy(settings, *data.test, model));
  }
  return result;
}

std::string Describe(const EpochResult& r) {
  const std::string tested =
      r.accuracy < 0
          ? std::string()
          : absl::StrFormat(", test accuracy %.2f%%", 100 * r.accuracy);
  return absl::StrFormat("epoch %d: loss %.4f%s, %d images in %s (%.1f/s)",
                         r.epoch + 1, r.loss, tested, r.images,
                         FormatDuration(r.seconds),
                         static_cast<double>(r.images) / r.seconds);
}

absl::Status AppendJson(const std::string& path, const EpochResult& r) {
  nlohmann::ordered_json line = {
      {"epoch", r.epoch + 1},
      {"loss", r.loss},
      {"images", r.images},
      {"seconds", r.seconds},
      {"images_per_s", static_cast<double>(r.images) / r.seconds}};
  if (r.accuracy >= 0) line["test_accuracy"] = r.accuracy;
  if (path == "-") {
    std::printf("%s\n", line.dump().c_str());
    return absl::OkStatus();
  }
  std::ofstream file(path, std::ios::app);
  file << line.dump() << std::endl;
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write to ", path));
}

}  // namespace

std::string TestDataBeside(const std::string& data) {
  std::filesystem::path path(data);
  if (!path.has_filename()) path = path.parent_path();  // "images/train/"
  std::string name = path.filename().string();
  const size_t at = name.find("train");
  if (at == std::string::npos) return "";
  const std::filesystem::path test =
      path.parent_path() / name.replace(at, 5, "test");
  return std::filesystem::exists(test) ? test.string() : "";
}

absl::Status TrainOnImages(rpc::Agent& agent, std::vector<std::string> workers,
                           Settings settings) {
  RETURN_IF_ERROR(PrepareToSave(settings.saving));
  ASSIGN_OR_RETURN(const Data data, OpenData(settings));
  std::printf("%d training images of %d classes from %s\n",
              static_cast<int>(data.train->dataset().size()),
              static_cast<int>(settings.model.num_classes),
              settings.data.c_str());
  const PlannedModel planned = PlannedResNet(agent, settings);
  if (StagesAreOpen(planned, workers, settings)) {
    data.train->StartEpoch(0);
    ASSIGN_OR_RETURN(const std::optional<data::Batch> batch,
                     data.train->Next());
    if (!batch.has_value())
      return absl::InvalidArgumentError("there is no image to measure with");
    RETURN_IF_ERROR(ChooseStages(planned, ToTrainingBatch(settings, *batch),
                                 settings, workers)
                        .status());
  }
  // All batches of the training have the rows of the first one (OpenLoader).
  const bool unequal = !settings.micro_batches.empty();
  ASSIGN_OR_RETURN(
      auto model,
      MakeRemoteResNet(
          agent, workers, settings,
          unequal ? RemoteResNet::Options{.cuts = settings.cuts,
                                          .micro_batches =
                                              settings.micro_batches.front()}
                  : RemoteResNet::Options{
                        .cuts = settings.cuts,
                        .split_size = settings.split_sizes.front()}));
  data.train->StartEpoch(0);
  const int64_t steps = settings.epochs * BatchesOf(settings, *data.train);
  model->set_schedule(settings.stepping.RatesOver(steps));
  ASSIGN_OR_RETURN(auto saved,
                   SavedTraining::Make(settings.saving, *model, *data.train));
  RETURN_IF_ERROR(saved->Begin());
  std::optional<TrainingLog> log;
  const auto begin_log = [&] {
    log.emplace("training", "images", settings.stepping.RateOver(steps),
                saved->progress().steps + 1);
  };
  begin_log();
  while (data.train->epoch() < settings.epochs) {
    const absl::StatusOr<EpochResult> result =
        TrainAndTest(settings, data, *model, *saved, *log);
    if (!result.ok()) {
      RETURN_IF_ERROR(saved->GoBack(result.status()));
      begin_log();
      continue;
    }
    std::printf("%s\n", Describe(*result).c_str());
    std::fflush(stdout);
    if (!settings.json.empty()) {
      RETURN_IF_ERROR(AppendJson(settings.json, *result));
    }
    const bool last = result->epoch + 1 == settings.epochs;
    RETURN_IF_ERROR(saved->AfterEpoch(last));
  }
  return model->Finish();
}

}  // namespace baton::examples
