// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/tensor.h"
#include "models/distributed/schedule.h"
#include "models/distributed/stage_routes.h"
#include "models/distributed/state_keeper.h"
#include "optim/distributed/local_optimizer.h"
#include "rpc/codec.h"

// What a trainer and the stages of its pipeline tell each other.
namespace baton::dist {

enum class Loss : uint8_t {
  kNone = 0,
  kCrossEntropy = 1,  // targets: i64 [N] labels
  kMse = 2,           // targets: like the outputs
  kOwn = 3,           // the last stage's StageLoss says
};

struct StageSpec {
  int32_t index = 0;
  int32_t count = 1;
  // Keeps only the inputs of micro-batches and runs forwards again before
  // backwards, with the same random numbers: less memory for about a third more
  // time.
  bool checkpoint = false;
  // Running statistics move once a step, by those of the whole batch
  // (PipelineOptions).
  bool deferred_batch_norm = false;
  // Replays the module from recordings where it can (nn::Graphed): on a GPU,
  // in training, where neither equal bits are wanted (core/precision.h) nor the
  // module draws random numbers, without `checkpoint` and deferred statistics,
  // of which the host keeps account in each forward. Activations of as many
  // micro-batches as are under way at once keep their memory between steps.
  bool graph = true;
  // Of the whole pipeline.
  std::vector<StageRoute> routes = {};
  // PipelineOptions' line and epoch.
  std::string line = {};
  uint64_t epoch = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
  // "stage 1 of 3: " before its text.
  absl::Status Explain(const absl::Status& status) const {
    return Annotate(status, absl::StrCat("stage ", index, " of ", count));
  }

  static constexpr auto Fields() {
    return std::tuple{&StageSpec::index,      &StageSpec::count,
                      &StageSpec::checkpoint, &StageSpec::deferred_batch_norm,
                      &StageSpec::graph,      &StageSpec::routes,
                      &StageSpec::line,       &StageSpec::epoch};
  }
};

// What one worker, or one process for all its devices, does in each of the
// steps that name the plan.
struct StepPlan {
  uint64_t id = 0;  // counts up
  Program program{};
  int64_t rows = 0;                      // of the whole batch
  std::vector<int64_t> micro_batches{};  // rows of each
  // Micro-batches that a GPU works on at once, and whether it runs forwards
  // beside backwards, where the program is recorded.
  int32_t at_once = 1;
  bool overlap = false;
  bool training = false;
  Loss loss = Loss::kNone;
  // Parameters are stepped once all workers have run their programs, here by
  // the optimizer, if there are any. Else gradients go to the call's context.
  bool steps = false;
  std::optional<RRef<OptimizerHost>> optimizer = std::nullopt;
  // What copies the worker's state after each step of parameters.
  std::optional<RRef<StateKeeper>> keeper = std::nullopt;
  static constexpr auto Fields() {
    return std::tuple{&StepPlan::id,       &StepPlan::program,
                      &StepPlan::rows,     &StepPlan::micro_batches,
                      &StepPlan::at_once,  &StepPlan::overlap,
                      &StepPlan::training, &StepPlan::loss,
                      &StepPlan::steps,    &StepPlan::optimizer,
                      &StepPlan::keeper};
  }
};

// Whether neighbours on one machine pass values through windows
// (docs/design/step_windows.md), which takes neither messages nor the hosts
// while a step runs. GPUs use them in steps that replay the whole program.
enum class Windows : uint8_t {
  kOff = 0,
  // Between processes that compute on the CPU, or on GPUs of their own.
  kAuto = 1,
  // Everywhere: also between two processes that share a GPU, whose time a wait
  // takes, and in one process where its memory is the CPU's.
  kRequired = 2,
};

// What the GPUs of a worker replay in a step, in place of work that is launched
// one kernel after the other.
enum class Replay : uint8_t {
  kNothing = 0,
  kPasses = 1,   // forwards and backwards of micro-batches (nn::Graphed)
  kProgram = 2,  // all of the worker's program (RecordedProgram)
};

// Of a link between two stages.
struct LinkEnds {
  int32_t from = 0;
  int32_t to = 0;  // behind it
  static constexpr auto Fields() {
    return std::tuple{&LinkEnds::from, &LinkEnds::to};
  }
};

// How a worker whose program is recorded hears, without its host, that those of
// all workers have run: they are a tree by windows between them, whose root
// hears of all and then tells all.
struct StepGate {
  std::optional<LinkEnds> parent = std::nullopt;  // none: the root
  std::vector<LinkEnds> children{};
  static constexpr auto Fields() {
    return std::tuple{&StepGate::parent, &StepGate::children};
  }
};

// One step, as one worker is told.
struct StepOrder {
  uint64_t step = 0;   // counts up
  uint64_t after = 0;  // the newest step that was under way; 0: none was
  uint64_t plan = 0;
  // Where the worker may not have it yet.
  std::optional<StepPlan> new_plan = std::nullopt;
  uint64_t oldest_plan = 0;  // those before it are named no more
  // The whole batch, to the first stage's and where routes of it lead;
  // undefined what is for others, none where all is.
  Values inputs{};
  Tensor targets;       // to the last stage's
  StepRequest request;  // to plan's optimizer
  int64_t kept_as = 0;  // by the plan's keeper
  // That gradients are so much larger by before it steps by them: where one
  // overflows, at whatever worker, none steps. 0: they are as they are.
  double loss_scale = 0;
  bool timed = false;  // the report is to have times
  // Links that go by windows in this step.
  std::vector<LinkEnds> windows{};
  // What becomes of the others once the step has run: the report tells.
  Windows make_windows = Windows::kOff;
  Replay replay = Replay::kNothing;
  // Once the step has run: record the program, for Replay::kProgram.
  bool record = false;
  StepGate gate{};  // of what is recorded
  std::chrono::milliseconds time_left{};
  static constexpr auto Fields() {
    return std::tuple{
        &StepOrder::step,     &StepOrder::after,       &StepOrder::plan,
        &StepOrder::new_plan, &StepOrder::oldest_plan, &StepOrder::inputs,
        &StepOrder::targets,  &StepOrder::request,     &StepOrder::kept_as,
        &StepOrder::timed,    &StepOrder::loss_scale,  &StepOrder::windows,
        &StepOrder::replay,   &StepOrder::record,      &StepOrder::make_windows,
        &StepOrder::gate,     &StepOrder::time_left};
  }
};

// What the last stage has to say of a step, whose tensors are undefined where
// there is no loss.
struct StageReport {
  Tensor losses;  // of each micro-batch; their sum is the mean of the batch
  // f32 []: rows of the first outputs that are largest where the targets are;
  // undefined but for outputs of rank 2 and targets that are i64 labels or as
  // they are.
  Tensor correct;
  std::vector<Values> outputs;  // of each micro-batch; only without training
  static constexpr auto Fields() {
    return std::tuple{&StageReport::losses, &StageReport::correct,
                      &StageReport::outputs};
  }
};

// How long a copy to another worker took.
struct CopyTime {
  LinkEnds ends;
  double seconds = 0;
  static constexpr auto Fields() {
    return std::tuple{&CopyTime::ends, &CopyTime::seconds};
  }
};

// How long a worker's program took on its devices, in seconds.
struct StepTimes {
  // Of each instruction, without its waits, in the program's order.
  std::vector<double> instructions;
  double busy = 0;  // that some device computed; what overlaps counts once
  // From when the worker was told, and was through with the step before, to the
  // program's end.
  double until_end = 0;
  std::vector<CopyTime> copies = {};  // through windows of GPUs
  static constexpr auto Fields() {
    return std::tuple{&StepTimes::instructions, &StepTimes::busy,
                      &StepTimes::until_end, &StepTimes::copies};
  }
};

// What came of making windows for a link.
struct MadeWindow {
  LinkEnds ends;
  bool of_gpu = false;    // of use to recorded programs alone
  std::string why_not{};  // empty: they are there
  static constexpr auto Fields() {
    return std::tuple{&MadeWindow::ends, &MadeWindow::of_gpu,
                      &MadeWindow::why_not};
  }
};

// What a worker has to say when its program has run.
struct GroupReport {
  StageReport last;         // empty unless the worker has the last stage
  bool overflowed = false;  // gradients did, somewhere: nothing was stepped
  std::optional<StepTimes> times = std::nullopt;  // if the order asked for them
  // Of links from its stages to other workers', if the order asked for them.
  std::vector<MadeWindow> windows{};
  // If the order asked for it: why the program cannot be replayed; empty: it
  // can.
  std::optional<std::string> why_not_recorded = std::nullopt;
  static constexpr auto Fields() {
    return std::tuple{&GroupReport::last, &GroupReport::overflowed,
                      &GroupReport::times, &GroupReport::windows,
                      &GroupReport::why_not_recorded};
  }
};

}  // namespace baton::dist
