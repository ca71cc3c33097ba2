// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/pipeline_settings.h"

#include <algorithm>
#include <iterator>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "examples/support/link_paths.h"
#include "examples/support/trace_flag.h"
#include "examples/support/unused_flags.h"
#include "tools/command_line.h"
#include "tools/output_file.h"

ABSL_FLAG(
    std::string, stages, "",
    "parts to cut the model into; default as --cuts say, without them 2, "
    "or auto where several workers have GPUs and no flag says how to cut; "
    "auto: workers measure the model first, and stages and cuts, and of "
    "--split_size, --schedule, --micro_batches, --at_once and --overlap "
    "what is left out, are chosen by that");
ABSL_FLAG(int64_t, worker_mib, 0,
          "with --stages=auto, the most MiB of weights, gradients, activations "
          "and windows that a worker may hold; 0: 90% of what its GPU has "
          "free, on a CPU any number");
ABSL_FLAG(int, trials, 4,
          "with --stages=auto, how many of the best plans are tried for a few "
          "steps, beside one worker alone, and the fastest taken; 0: none");
ABSL_FLAG(std::vector<std::string>, cuts, {},
          "what each stage but the last ends after, as in layer1,layer2.1 of a "
          "ResNet or blocks.5 of a Transformer; default: as even as can be");
ABSL_FLAG(std::vector<std::string>, variants,
          std::vector<std::string>({"single", "split", "pipelined"}),
          "what to measure: single (one worker), split (stage after stage), "
          "calls (the same, each stage's forward called by the trainer, and "
          "distributed autograd), pipelined, local (all stages in one worker, "
          "on its GPUs in turn)");
ABSL_FLAG(std::vector<std::string>, require_path, {},
          "fail where a link between stages of two workers has another path "
          "than these: window, shared_memory, cuda_ipc, tcp, grpc; empty: any");
ABSL_FLAG(std::vector<std::string>, split_size, {},
          "rows (images, texts) of a micro-batch; several, as in 10,20,40, "
          "give the curve; default 20 images, a quarter of the texts");
ABSL_FLAG(std::vector<std::string>, split_sizes, {},
          "another name of --split_size; counts where both are given");
ABSL_FLAG(std::vector<std::string>, micro_batches, {},
          "instead of --split_size, rows of each micro-batch, as in 20+40+60; "
          "several give a curve; resnet50_single_machine needs --device=cuda");
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
ABSL_FLAG(int, replicas, 1,
          "pipelines, each over its part of the workers and of every batch; a "
          "stage's gradients are the mean of those of its copies");
ABSL_FLAG(
    bool, recover, false,
    "go on when workers of the pipeline are lost: beside their steps they "
    "copy their state to each other, and a worker that is started again, "
    "or a spare, takes the place of one that is lost (baton-run "
    "--restarts, --spares)");
ABSL_FLAG(bool, recompute, false,
          "keep only the inputs of micro-batches and run forwards again: less "
          "memory, more time");
ABSL_FLAG(int, at_once, 1,
          "micro-batches that a GPU works on at once, on as many streams; pays "
          "for small ones");
ABSL_FLAG(bool, overlap, false,
          "GPUs run forwards beside backwards of other micro-batches, on "
          "streams of their own; pays for several micro-batches");
ABSL_FLAG(std::string, graph, "",
          "on: what GPUs do in each step is recorded and replayed as CUDA "
          "graphs, all of a worker's part where that can be; off; default on "
          "with a GPU");
ABSL_FLAG(
    bool, deferred_batch_norm, false,
    "running statistics of batch norms move once a batch, by those of all "
    "its rows, rather than by each micro-batch");
ABSL_FLAG(std::string, json, "",
          "write JSON lines of the results here (- : "
          "standard output)");
ABSL_FLAG(std::string, plot, "",
          "write charts of the results into this folder (needs gnuplot)");

namespace baton::examples {
namespace {

using tools::WrongFlag;

bool StagesAreAuto() { return absl::GetFlag(FLAGS_stages) == "auto"; }

bool NamesNoStages() {
  static constexpr const char* kNaming[] = {
      "stages",   "cuts",          "split_size", "split_sizes",
      "overlap",  "micro_batches", "schedule",   "at_once",
      "replicas", "schedule_file", "recover"};
  return std::all_of(std::begin(kNaming), std::end(kNaming), IsDefault);
}

// Returns an empty list if measurements are to choose the sizes.
absl::StatusOr<std::vector<int64_t>> SplitSizes(
    const PipelineDefaults& defaults) {
  std::vector<std::string> texts = absl::GetFlag(FLAGS_split_sizes);
  if (texts.empty()) texts = absl::GetFlag(FLAGS_split_size);
  std::vector<int64_t> sizes;
  for (const std::string& text : texts) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(text, &size) || size < 1 || size > defaults.batch) {
      return WrongFlag("split_size",
                       absl::StrCat("takes numbers from 1 to --batch (",
                                    defaults.batch, "), got '", text, "'"));
    }
    sizes.push_back(size);
  }
  if (sizes.empty() && !StagesAreAuto())
    sizes.push_back(std::min(defaults.batch, defaults.split_size));
  return sizes;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> MicroBatches(int64_t batch) {
  std::vector<std::vector<int64_t>> lists;
  if (StagesAreAuto() && !absl::GetFlag(FLAGS_micro_batches).empty())
    return WrongFlag("stages",
                     "auto chooses micro-batches, but --micro_batches are "
                     "given");
  for (const std::string& text : absl::GetFlag(FLAGS_micro_batches)) {
    lists.emplace_back();
    int64_t left = batch;
    for (absl::string_view part : absl::StrSplit(text, '+')) {
      int64_t size = 0;
      if (!absl::SimpleAtoi(part, &size) || size < 1 || size > left) {
        left = -1;  // no later number can correct this
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

absl::StatusOr<std::vector<std::string>> Variants(
    const std::vector<std::string>& known) {
  std::vector<std::string> variants = absl::GetFlag(FLAGS_variants);
  for (const std::string& variant : variants)
    RETURN_IF_ERROR(tools::CheckWord("--variants", variant, known));
  if (variants.empty()) return WrongFlag("variants", "names none");
  return variants;
}

absl::StatusOr<std::vector<std::string>> RequiredPaths() {
  std::vector<std::string> paths = absl::GetFlag(FLAGS_require_path);
  for (std::string& path : paths) {
    std::replace(path.begin(), path.end(), '_', ' ');
    RETURN_IF_ERROR(tools::CheckWord("--require_path", path, KnownPaths()));
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> Cuts(
    const PipelineDefaults& defaults) {
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
  return defaults.cuts(stages == 0 ? 2 : stages);
}

absl::StatusOr<dist::ScheduleChoice> ScheduleFlags() {
  dist::ScheduleChoice choice;
  choice.name = absl::GetFlag(FLAGS_schedule);
  if (choice.name.empty()) choice.name = StagesAreAuto() ? "auto" : "gpipe";
  choice.most_held = absl::GetFlag(FLAGS_most_held);
  RETURN_IF_ERROR(
      tools::CheckWord("--schedule", choice.name, dist::ScheduleNames()));
  if (choice.most_held != 0 && choice.most_held < 1)
    return WrongFlag("most_held", "takes 0, or 1 and more");
  const std::string file = absl::GetFlag(FLAGS_schedule_file);
  if (!file.empty() && StagesAreAuto())
    return WrongFlag("stages",
                     "auto makes an order, but --schedule_file is given");
  if (!file.empty()) {
    const auto given = dist::LoadSchedule(file);
    RETURN_IF_ERROR(Annotate(given.status(), "--schedule_file"));
    choice.given = *given;
    choice.name = choice.given->name;
  }
  return choice;
}

absl::StatusOr<int> Replicas(int64_t batch) {
  const int replicas = absl::GetFlag(FLAGS_replicas);
  if (replicas == 1) return replicas;
  if (replicas < 1 || batch % replicas != 0) {
    return WrongFlag("replicas", absl::StrCat("takes what divides --batch (",
                                              batch, "), not ", replicas));
  }
  if (StagesAreAuto() || !absl::GetFlag(FLAGS_micro_batches).empty()) {
    return WrongFlag("replicas",
                     "goes neither with --stages=auto nor with "
                     "--micro_batches");
  }
  return replicas;
}

}  // namespace

absl::StatusOr<PipelineSettings> PipelineSettingsFromFlags(
    const PipelineDefaults& defaults) {
  PipelineSettings settings;
  settings.batch = defaults.batch;
  ASSIGN_OR_RETURN(settings.cuts, Cuts(defaults));
  ASSIGN_OR_RETURN(settings.split_sizes, SplitSizes(defaults));
  ASSIGN_OR_RETURN(settings.micro_batches, MicroBatches(defaults.batch));
  ASSIGN_OR_RETURN(settings.variants, Variants(defaults.variants));
  ASSIGN_OR_RETURN(settings.require_path, RequiredPaths());
  ASSIGN_OR_RETURN(settings.schedule, ScheduleFlags());
  ASSIGN_OR_RETURN(settings.replicas, Replicas(defaults.batch));
  settings.recover = absl::GetFlag(FLAGS_recover);
  if (settings.recover && settings.replicas > 1)
    return WrongFlag("recover", "goes not with --replicas");
  settings.choose_stages = StagesAreAuto();
  settings.names_no_stages = NamesNoStages();
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_worker_mib, FLAGS_trials));
  settings.worker_mib = absl::GetFlag(FLAGS_worker_mib);
  settings.trials = absl::GetFlag(FLAGS_trials);
  settings.recompute = absl::GetFlag(FLAGS_recompute);
  settings.at_once = absl::GetFlag(FLAGS_at_once);
  if (settings.at_once < 1 || settings.at_once > 16)
    return WrongFlag("at_once", "takes 1 to 16");
  settings.overlap = absl::GetFlag(FLAGS_overlap);
  const std::string graph = absl::GetFlag(FLAGS_graph);
  if (!graph.empty())
    RETURN_IF_ERROR(tools::CheckWord("--graph", graph, {"on", "off"}));
  settings.graph = graph != "off";
  settings.deferred_batch_norm = absl::GetFlag(FLAGS_deferred_batch_norm);
  RETURN_IF_ERROR(
      tools::CheckOutputs(FLAGS_json, FLAGS_save_schedule, FLAGS_trace));
  RETURN_IF_ERROR(tools::CheckOutputFolder(FLAGS_plot));
  settings.json = absl::GetFlag(FLAGS_json);
  settings.plot = absl::GetFlag(FLAGS_plot);
  settings.trace = absl::GetFlag(FLAGS_trace);
  settings.save_schedule = absl::GetFlag(FLAGS_save_schedule);
  return settings;
}

std::vector<Variant> VariantsOf(const PipelineSettings& settings) {
  std::vector<Variant> variants;
  for (const std::string& name : settings.variants) {
    const bool local = name == "local";
    if (name != "pipelined" && !local) {
      variants.push_back(
          {.name = name, .cut = name != "single", .calls = name == "calls"});
      continue;
    }
    for (const std::vector<int64_t>& sizes : settings.micro_batches) {
      variants.push_back(
          {.name = absl::StrCat(name, " ", absl::StrJoin(sizes, "+")),
           .cut = true,
           .micro_batches = sizes,
           .local = local});
    }
    if (!settings.micro_batches.empty()) continue;
    for (int64_t size : settings.split_sizes) {
      variants.push_back({.name = absl::StrCat(name, " ", size),
                          .cut = true,
                          .split_size = size,
                          .local = local});
    }
  }
  return variants;
}

}  // namespace baton::examples
