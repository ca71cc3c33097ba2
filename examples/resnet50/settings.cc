// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/resnet50/settings.h"

#include <algorithm>
#include <optional>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "tools/command_line.h"

ABSL_FLAG(int, depth, 50, "layers of the ResNet: 18, 34, 50, 101 or 152");
ABSL_FLAG(int64_t, width, 64, "channels behind the stem");
ABSL_FLAG(int64_t, classes, 1000,
          "classes of the synthetic images; with --data the data's own");
ABSL_FLAG(std::string, stages, "",
          "parts to cut the model into, 1 to 4; default 2, or as --cuts say; "
          "auto: workers measure the model first, and stages and cuts, and of "
          "--split_size and --schedule what is left out, are chosen by that");
ABSL_FLAG(int64_t, worker_mib, 0,
          "with --stages=auto, the most MiB of weights, gradients and "
          "activations that a worker may hold; 0: any number");
ABSL_FLAG(int, trials, 4,
          "with --stages=auto, how many of the best plans are tried for a few "
          "steps, beside one worker alone, and the fastest taken; 0: none");
ABSL_FLAG(std::vector<std::string>, cuts, {},
          "what each stage but the last ends after, as in layer2 or "
          "layer1,layer2.1,layer3; default layer2 for two stages");
ABSL_FLAG(std::vector<std::string>, variants,
          std::vector<std::string>({"single", "split", "pipelined"}),
          "what to measure: single (one worker), split (stage after stage), "
          "pipelined");
ABSL_FLAG(std::vector<std::string>, split_size, {},
          "images of a micro-batch; several, as in 10,20,40, give the curve; "
          "default 20, or the batch where that is smaller");
ABSL_FLAG(std::vector<std::string>, split_sizes, {},
          "another name of --split_size, which it comes before");
ABSL_FLAG(
    std::vector<std::string>, micro_batches, {},
    "instead of --split_size, images of each micro-batch, as in 20+40+60; "
    "several give a curve; needs resnet50_single_machine --device=cuda");
ABSL_FLAG(int64_t, batch, 120, "images of a batch");
ABSL_FLAG(int64_t, image, 128, "height and width of the images");
ABSL_FLAG(int64_t, batches, 3, "batches of one repeat");
ABSL_FLAG(int64_t, repeat, 3, "times that each variant is measured");
ABSL_FLAG(std::string, schedule, "",
          "order of work in a pipeline: gpipe, 1f1b, interleaved-1f1b, zb-h1, "
          "zb-v (two stages a worker), or auto, by measured costs; default "
          "gpipe, with --stages=auto auto");
ABSL_FLAG(std::string, schedule_file, "",
          "instead of --schedule, the order in this file, as --save_schedule "
          "writes it; for one split size");
ABSL_FLAG(std::string, save_schedule, "",
          "write the order that the pipelined variant followed to this file (- "
          ": standard output); of several the last one stays");
ABSL_FLAG(double, most_held, 0,
          "with --schedule=auto, the most micro-batches whose activations a "
          "worker may hold; 0: twice what 1f1b would hold");
ABSL_FLAG(std::string, loss, "",
          "mse (on one-hot labels) or cross_entropy; default mse for synthetic "
          "images, cross_entropy for --data");
ABSL_FLAG(std::optional<double>, lr, std::nullopt,
          "learning rate; default 0.001, with --data 0.05");
ABSL_FLAG(std::optional<double>, momentum, std::nullopt,
          "of SGD; default 0, with --data 0.9");
ABSL_FLAG(std::optional<double>, weight_decay, std::nullopt,
          "of SGD; default 0, with --data 0.0005");
ABSL_FLAG(bool, recompute, false,
          "keep only the inputs of micro-batches and run forwards again: less "
          "memory, more time");
ABSL_FLAG(std::string, graph, "",
          "on: what GPUs do in each step, or of resnet50_pipeline in each "
          "stage, is recorded and replayed as CUDA graphs; off; default on "
          "with a GPU");
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
ABSL_FLAG(std::string, json, "",
          "write JSON lines of the results here (- : "
          "standard output)");
ABSL_FLAG(std::string, plot, "",
          "write charts of the results into this folder (needs gnuplot)");

namespace baton::examples {
namespace {

using tools::WrongFlag;

// That of PyTorch's model-parallel tutorial.
constexpr int64_t kUsualSplitSize = 20;

absl::StatusOr<int64_t> AtLeastOne(const char* flag, int64_t value) {
  if (value < 1)
    return WrongFlag(flag, absl::StrCat("must be 1 or more, got ", value));
  return value;
}

bool StagesAreAuto() { return absl::GetFlag(FLAGS_stages) == "auto"; }

// None where they are to be chosen.
absl::StatusOr<std::vector<int64_t>> SplitSizes(int64_t batch) {
  std::vector<std::string> texts = absl::GetFlag(FLAGS_split_sizes);
  if (texts.empty()) texts = absl::GetFlag(FLAGS_split_size);
  std::vector<int64_t> sizes;
  for (const std::string& text : texts) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(text, &size) || size < 1 || size > batch) {
      return WrongFlag("split_size",
                       absl::StrCat("takes numbers from 1 to --batch (", batch,
                                    "), got '", text, "'"));
    }
    sizes.push_back(size);
  }
  if (sizes.empty() && !StagesAreAuto())
    sizes.push_back(std::min(batch, kUsualSplitSize));
  return sizes;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> MicroBatches(int64_t batch) {
  std::vector<std::vector<int64_t>> lists;
  for (const std::string& text : absl::GetFlag(FLAGS_micro_batches)) {
    lists.emplace_back();
    int64_t left = batch;
    for (absl::string_view part : absl::StrSplit(text, '+')) {
      int64_t size = 0;
      if (!absl::SimpleAtoi(part, &size) || size < 1 || size > left) {
        left = -1;  // nothing that follows makes it right
        break;
      }
      lists.back().push_back(size);
      left -= size;
    }
    if (left != 0) {
      return WrongFlag(
          "micro_batches",
          absl::StrCat("takes numbers that add up to --batch (", batch,
                       "), as in 20+40+60, got '", text, "'"));
    }
  }
  return lists;
}

absl::StatusOr<std::vector<std::string>> Variants() {
  std::vector<std::string> variants = absl::GetFlag(FLAGS_variants);
  const std::vector<std::string> known = {"single", "split", "pipelined"};
  for (const std::string& variant : variants) {
    if (std::find(known.begin(), known.end(), variant) == known.end()) {
      return WrongFlag("variants",
                       absl::StrCat("knows single, split and pipelined, "
                                    "not '",
                                    variant, "'"));
    }
  }
  if (variants.empty()) return WrongFlag("variants", "names none");
  return variants;
}

// Cuts that share the work evenly, by the time of ResNet's layers.
absl::StatusOr<std::vector<std::string>> Cuts() {
  std::vector<std::string> cuts = absl::GetFlag(FLAGS_cuts);
  const std::string text = absl::GetFlag(FLAGS_stages);
  if (StagesAreAuto()) {
    if (cuts.empty()) return cuts;
    return WrongFlag("stages", "auto chooses the cuts, but --cuts are given");
  }
  int stages = 0;
  if (!text.empty() && (!absl::SimpleAtoi(text, &stages) || stages < 1))
    return WrongFlag("stages",
                     absl::StrCat("takes a number or auto, not '", text, "'"));
  if (!cuts.empty()) {
    if (stages == 0 || stages == static_cast<int>(cuts.size()) + 1) return cuts;
    return WrongFlag("stages", absl::StrCat("is ", stages, ", but --cuts make ",
                                            cuts.size() + 1));
  }
  switch (stages) {
    case 1:
      return cuts;
    case 0:
    case 2:
      return std::vector<std::string>{"layer2"};
    case 3:
      return std::vector<std::string>{"layer1", "layer3"};
    case 4:
      return std::vector<std::string>{"layer1", "layer2", "layer3"};
    default:
      return WrongFlag("stages", "takes 1 to 4; for more name the --cuts");
  }
}

absl::StatusOr<dist::ScheduleChoice> ScheduleFlags() {
  dist::ScheduleChoice choice;
  choice.name = absl::GetFlag(FLAGS_schedule);
  if (choice.name.empty()) choice.name = StagesAreAuto() ? "auto" : "gpipe";
  choice.most_held = absl::GetFlag(FLAGS_most_held);
  const std::vector<std::string> names = dist::ScheduleNames();
  if (std::find(names.begin(), names.end(), choice.name) == names.end()) {
    return WrongFlag("schedule", absl::StrCat("is ", absl::StrJoin(names, ", "),
                                              ", not '", choice.name, "'"));
  }
  if (choice.most_held != 0 && choice.most_held < 1)
    return WrongFlag("most_held", "takes 0, or 1 and more");
  const std::string file = absl::GetFlag(FLAGS_schedule_file);
  if (!file.empty() && StagesAreAuto())
    return WrongFlag("stages",
                     "auto makes an order, but --schedule_file is "
                     "given");
  if (!file.empty()) {
    ASSIGN_OR_RETURN(choice.given, dist::LoadSchedule(file));
    choice.name = choice.given->name;
  }
  return choice;
}

absl::StatusOr<dist::Loss> LossFlag(bool real_data) {
  const std::string name = absl::GetFlag(FLAGS_loss);
  if (name == "mse" || (name.empty() && !real_data)) return dist::Loss::kMse;
  if (name == "cross_entropy" || name.empty()) return dist::Loss::kCrossEntropy;
  return WrongFlag("loss",
                   absl::StrCat("is mse or cross_entropy, not '", name, "'"));
}

absl::Status ReadModel(Settings& settings) {
  settings.model.depth = absl::GetFlag(FLAGS_depth);
  settings.model.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
  ASSIGN_OR_RETURN(settings.model.width,
                   AtLeastOne("width", absl::GetFlag(FLAGS_width)));
  ASSIGN_OR_RETURN(settings.model.num_classes,
                   AtLeastOne("classes", absl::GetFlag(FLAGS_classes)));
  ASSIGN_OR_RETURN(settings.cuts, Cuts());
  // Says at once what is wrong with the model or a cut.
  return models::ResNet::StageUnits(settings.model, settings.cuts, 0).status();
}

absl::Status ReadExperiment(Settings& settings) {
  ASSIGN_OR_RETURN(settings.batch,
                   AtLeastOne("batch", absl::GetFlag(FLAGS_batch)));
  ASSIGN_OR_RETURN(settings.image,
                   AtLeastOne("image", absl::GetFlag(FLAGS_image)));
  ASSIGN_OR_RETURN(settings.batches,
                   AtLeastOne("batches", absl::GetFlag(FLAGS_batches)));
  ASSIGN_OR_RETURN(settings.repeat,
                   AtLeastOne("repeat", absl::GetFlag(FLAGS_repeat)));
  ASSIGN_OR_RETURN(settings.epochs,
                   AtLeastOne("epochs", absl::GetFlag(FLAGS_epochs)));
  ASSIGN_OR_RETURN(settings.split_sizes, SplitSizes(settings.batch));
  ASSIGN_OR_RETURN(settings.micro_batches, MicroBatches(settings.batch));
  ASSIGN_OR_RETURN(settings.variants, Variants());
  ASSIGN_OR_RETURN(settings.schedule, ScheduleFlags());
  settings.save_schedule = absl::GetFlag(FLAGS_save_schedule);
  settings.choose_stages = StagesAreAuto();
  settings.worker_mib = absl::GetFlag(FLAGS_worker_mib);
  if (settings.worker_mib < 0)
    return WrongFlag("worker_mib", "must not be negative");
  settings.trials = absl::GetFlag(FLAGS_trials);
  if (settings.trials < 0) return WrongFlag("trials", "must not be negative");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Settings> SettingsFromFlags() {
  Settings settings;
  settings.data = absl::GetFlag(FLAGS_data);
  const bool real = !settings.data.empty();
  RETURN_IF_ERROR(ReadModel(settings));
  RETURN_IF_ERROR(ReadExperiment(settings));
  ASSIGN_OR_RETURN(settings.loss, LossFlag(real));
  settings.sgd.lr = absl::GetFlag(FLAGS_lr).value_or(real ? 0.05 : 0.001);
  settings.sgd.momentum =
      absl::GetFlag(FLAGS_momentum).value_or(real ? 0.9 : 0);
  settings.sgd.weight_decay =
      absl::GetFlag(FLAGS_weight_decay).value_or(real ? 5e-4 : 0);
  settings.checkpoint_activations = absl::GetFlag(FLAGS_recompute);
  const std::string graph = absl::GetFlag(FLAGS_graph);
  if (graph != "" && graph != "on" && graph != "off")
    return WrongFlag("graph", absl::StrCat("is on or off, not '", graph, "'"));
  settings.graph = graph != "off";
  settings.test_data = absl::GetFlag(FLAGS_test_data);
  settings.limit = absl::GetFlag(FLAGS_limit);
  settings.loader_threads = absl::GetFlag(FLAGS_loader_threads);
  ASSIGN_OR_RETURN(settings.saving, SavingFromFlags());
  settings.json = absl::GetFlag(FLAGS_json);
  settings.plot = absl::GetFlag(FLAGS_plot);
  if (real && settings.split_sizes.size() > 1) {
    return WrongFlag("split_size", "takes one size with --data");
  }
  if (settings.limit < 0) return WrongFlag("limit", "must not be negative");
  if (settings.loader_threads < 0) {
    return WrongFlag("loader_threads", "must not be negative");
  }
  return settings;
}

}  // namespace baton::examples
