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

// The messages between a trainer and the stages of its pipeline.
namespace baton::dist {

enum class Loss : uint8_t {
  kNone = 0,
  kCrossEntropy = 1,  // targets: i64 [N] labels
  kMse = 2,           // targets: like the outputs
  kOwn = 3,           // the last stage's StageLoss computes it
};

struct StageSpec {
  int32_t index = 0;
  int32_t count = 1;
  // Keeps only the inputs of micro-batches and repeats forwards before
  // backwards, with the same random numbers: saves memory for about a third
  // more time.
  bool recompute = false;
  // Running statistics change once per step, by those of the whole batch
  // (PipelineOptions).
  bool deferred_batch_norm = false;
  // Replays the module from recordings if possible (nn::Graphed): in training
  // on a GPU, unless reproducible bits are required (core/precision.h), the
  // module draws random numbers, or `recompute` or deferred statistics, which
  // the host tracks in each forward, are set. The activations of as many
  // micro-batches as are under way at once keep their memory between steps.
  bool graph = true;
  // The routes of the whole pipeline.
  std::vector<StageRoute> routes = {};
  // See PipelineOptions.
  std::string line = {};
  uint64_t epoch = 0;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
  // Prefixes the status with "stage 1 of 3: ".
  absl::Status Explain(const absl::Status& status) const {
    return Annotate(status, absl::StrCat("stage ", index, " of ", count));
  }

  static constexpr auto Fields() {
    return std::tuple{&StageSpec::index,     &StageSpec::count,
                      &StageSpec::recompute, &StageSpec::deferred_batch_norm,
                      &StageSpec::graph,     &StageSpec::routes,
                      &StageSpec::line,      &StageSpec::epoch};
  }
};

// What one worker, or one process for all its devices, does in each step that
// names this plan.
struct StepPlan {
  uint64_t id = 0;  // increases
  Program program{};
  int64_t rows = 0;                      // in the whole batch
  std::vector<int64_t> micro_batches{};  // rows of each
  // For recorded programs: the number of micro-batches that a GPU works on at
  // once, and whether it runs forwards concurrently with backwards.
  int32_t at_once = 1;
  bool overlap = false;
  bool copy_streams = true;  // see PipelineOptions
  bool training = false;
  Loss loss = Loss::kNone;
  // Whether parameters are stepped once all workers have run their programs;
  // this worker's are stepped by `optimizer`, if it has any. Otherwise
  // gradients go to the call's context.
  bool steps = false;
  std::optional<RRef<OptimizerHost>> optimizer = std::nullopt;
  // Copies the worker's state after the steps that are to be kept.
  std::optional<RRef<StateKeeper>> keeper = std::nullopt;
  static constexpr auto Fields() {
    return std::tuple{&StepPlan::id,           &StepPlan::program,
                      &StepPlan::rows,         &StepPlan::micro_batches,
                      &StepPlan::at_once,      &StepPlan::overlap,
                      &StepPlan::copy_streams, &StepPlan::training,
                      &StepPlan::loss,         &StepPlan::steps,
                      &StepPlan::optimizer,    &StepPlan::keeper};
  }
};

// Whether neighbors on one machine pass values through windows
// (docs/design/step_windows.md), which need neither messages nor the host while
// a step runs. GPUs use them in steps that replay the whole program.
enum class Windows : uint8_t {
  kOff = 0,
  // Between processes that compute on the CPU, or each on a GPU of its own.
  kAuto = 1,
  // Everywhere: also between two processes that share a GPU, where waiting
  // takes time from the other process, and within one process if the memory is
  // the CPU's.
  kRequired = 2,
};

// What the GPUs of a worker replay in a step, instead of launching one kernel
// after the other.
enum class Replay : uint8_t {
  kNothing = 0,
  kPasses = 1,   // passes of micro-batches (nn::Graphed)
  kProgram = 2,  // the worker's whole program (RecordedProgram)
};

// A link between two stages.
struct LinkEnds {
  int32_t from = 0;
  int32_t to = 0;  // a later stage
  static constexpr auto Fields() {
    return std::tuple{&LinkEnds::from, &LinkEnds::to};
  }
};

// How a worker learns without messages, and on a GPU without its host, that all
// workers have run their programs. The workers form a tree of window links; the
// root hears from all and then notifies all.
struct StepGate {
  std::optional<LinkEnds> parent = std::nullopt;  // nullopt: this is the root
  std::vector<LinkEnds> children{};
  static constexpr auto Fields() {
    return std::tuple{&StepGate::parent, &StepGate::children};
  }
};

// One step, as it is sent to one worker.
struct StepOrder {
  uint64_t step = 0;   // increases
  uint64_t after = 0;  // the newest step that was under way; 0 if none was
  uint64_t plan = 0;
  // Set if the worker may not have the plan yet.
  std::optional<StepPlan> new_plan = std::nullopt;
  uint64_t oldest_plan = 0;  // earlier plans are not used again
  // The whole batch, for the first stage and the targets of its routes. Inputs
  // for other workers are undefined; empty if all are.
  Values inputs{};
  Tensor targets;       // for the last stage
  StepRequest request;  // for the plan's optimizer
  // For the plan's keeper: the number of the state after the step; 0: it is not
  // kept.
  int64_t kept_as = 0;
  // The loss is multiplied by this, and gradients are divided by it before the
  // step. If one overflows at any worker, no worker steps. 0: no scale.
  double loss_scale = 0;
  bool timed = false;  // the report is to include times
  // The links that use windows in this step.
  std::vector<LinkEnds> windows{};
  // Whether to make windows for the other links after the step; the report says
  // what came of it.
  Windows make_windows = Windows::kOff;
  Replay replay = Replay::kNothing;
  // Whether to record the program after the step, for Replay::kProgram.
  bool record = false;
  StepGate gate{};  // for the program to record, else for this step
  // Whether the first worker asks all others, by messages, whether their
  // programs have run. Otherwise either they agree by gates, or nobody steps.
  bool by_messages = false;
  std::chrono::milliseconds time_left{};
  static constexpr auto Fields() {
    return std::tuple{
        &StepOrder::step,     &StepOrder::after,       &StepOrder::plan,
        &StepOrder::new_plan, &StepOrder::oldest_plan, &StepOrder::inputs,
        &StepOrder::targets,  &StepOrder::request,     &StepOrder::kept_as,
        &StepOrder::timed,    &StepOrder::loss_scale,  &StepOrder::windows,
        &StepOrder::replay,   &StepOrder::record,      &StepOrder::make_windows,
        &StepOrder::gate,     &StepOrder::by_messages, &StepOrder::time_left};
  }
};

// The last stage's results of a step. Tensors are undefined if there is no
// loss.
struct StageReport {
  Tensor losses;  // of each micro-batch; their sum is the mean over the batch
  // f32 []: the number of rows whose largest element is where the target says,
  // in the first output. Undefined unless it has rank 2 and targets are i64
  // labels or of its form.
  Tensor correct;
  std::vector<Values> outputs;  // of each micro-batch; only without training
  static constexpr auto Fields() {
    return std::tuple{&StageReport::losses, &StageReport::correct,
                      &StageReport::outputs};
  }
};

// The time of a copy to another device.
struct CopyTime {
  LinkEnds ends;
  double seconds = 0;
  static constexpr auto Fields() {
    return std::tuple{&CopyTime::ends, &CopyTime::seconds};
  }
};

// The seconds that an instruction took, without waits. While n instructions of
// a device run at once, each counts an n-th of the time.
struct InstructionTime {
  double all = 0;
  double tail = 0;  // of these, those of a BW after its result was sent
  static constexpr auto Fields() {
    return std::tuple{&InstructionTime::all, &InstructionTime::tail};
  }
};

// The times of a worker's program on one of its devices, in seconds.
struct StepTimes {
  std::vector<InstructionTime> instructions;  // in the program's order
  double busy = 0;  // when it computed; overlaps count once
  // From when the worker had received the order and finished the step before,
  // to the end of the program.
  double until_end = 0;
  std::vector<CopyTime> copies = {};  // from its stages
  double until_begin = 0;             // as until_end, of the first instruction
  double gap = 0;  // the shortest time between two instructions
  // After the last instruction, until the gradients of replicas were reduced.
  double awaited = 0;
  static constexpr auto Fields() {
    return std::tuple{&StepTimes::instructions, &StepTimes::busy,
                      &StepTimes::until_end,    &StepTimes::copies,
                      &StepTimes::until_begin,  &StepTimes::gap,
                      &StepTimes::awaited};
  }
};

// The result of making windows for a link.
struct MadeWindow {
  LinkEnds ends;
  bool of_gpu = false;    // only recorded programs can use it
  std::string why_not{};  // empty if the windows were made
  static constexpr auto Fields() {
    return std::tuple{&MadeWindow::ends, &MadeWindow::of_gpu,
                      &MadeWindow::why_not};
  }
};

// A worker's report after its program has run.
struct GroupReport {
  StageReport last;         // empty unless the worker has the last stage
  bool overflowed = false;  // gradients overflowed at some worker; nothing was
                            // stepped
  // Of each device of the worker, in the order in which its stages first name
  // them; empty unless the order asked for times.
  std::vector<StepTimes> times{};
  // What became of windows for links from its stages to stages of other
  // workers, if the order asked for windows.
  std::vector<MadeWindow> windows{};
  // If the order asked for a recording: why the program cannot be replayed;
  // empty if it can.
  std::optional<std::string> why_not_recorded = std::nullopt;
  int64_t kernels = 0;  // of that recording
  static constexpr auto Fields() {
    return std::tuple{&GroupReport::last,
                      &GroupReport::overflowed,
                      &GroupReport::times,
                      &GroupReport::windows,
                      &GroupReport::why_not_recorded,
                      &GroupReport::kernels};
  }
};

}  // namespace baton::dist
