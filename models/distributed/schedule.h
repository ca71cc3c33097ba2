// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A schedule says what each worker of a pipeline does in one step, and in which
// order. It is plain data: a generator (schedules.h) or a file makes it, a
// simulation (simulation.h) predicts its time, and dist::Pipeline runs it.
namespace baton::dist {

enum class StageOp : uint8_t {
  kForward = 0,     // F: computes the output of a micro-batch from its input
  kInputGrad = 1,   // B: computes the input's gradient from the output's
  kWeightGrad = 2,  // W: computes the weight gradients that a B has left
  kBackward = 3,    // BW: both in one
};

// "F", "B", "W", "BW".
const char* NameOf(StageOp op);

// One unit of work, which includes receiving its inputs and sending its
// results. Value type.
struct Instruction {
  StageOp op = StageOp::kForward;
  int stage = 0;
  int micro_batch = 0;
  static constexpr auto Fields() {
    return std::tuple{&Instruction::op, &Instruction::stage,
                      &Instruction::micro_batch};
  }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// The instructions of one worker, in order.
using Program = std::vector<Instruction>;

// A worker is anything that executes one instruction at a time: a process, or
// one of its devices. It may have several stages; each stage is at one worker.
// Value type.
struct Schedule {
  std::string name;  // one word, such as "1f1b"
  std::vector<Program> workers;

  int stages() const;  // the largest stage of any instruction, plus one
  int micro_batches() const;
  // The worker of each stage; -1 for a stage without instructions.
  std::vector<int> worker_of_stage() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Returns InvalidArgument unless `program` has, for each of `stages` and no
// other stage, the forward of each micro-batch exactly once and in order. If it
// has any backward of a stage, it must have B and later W, or BW, of each
// micro-batch, also in order, and none before what it needs from the same
// stage. Hence gradients are added in the same order whatever the schedule.
absl::Status CheckProgram(const Program& program,
                          const std::vector<int>& stages, int micro_batches);

// Returns InvalidArgument unless CheckProgram accepts every worker's program
// for its stages, no stage is missing, either all stages train or none does,
// and no workers wait for each other.
absl::Status CheckSchedule(const Schedule& schedule);

// "0F2" is the forward of micro-batch 2 at stage 0; "1BW2", "1B2", "1W2".
std::string ToString(const Instruction& instruction);
// Returns nullopt for other texts.
std::optional<Instruction> ParseInstruction(absl::string_view text);
// "0F0 0F1 0BW0 0BW1".
std::string ToString(const Program& program);
// Returns the contents of a schedule file: its name, then a line for each
// worker.
//   schedule 1f1b
//   worker 0: 0F0 0F1 0BW0 0BW1
//   worker 1: 1F0 1BW0 1F1 1BW1
std::string ToString(const Schedule& schedule);

// Parses such a text; ignores empty lines and lines that begin with #.
// InvalidArgument names the line that is wrong or says, as CheckSchedule does,
// why the schedule cannot run.
absl::StatusOr<Schedule> ParseSchedule(const std::string& text);
// Returns NotFound, or another error of the file or of ParseSchedule; all name
// the path.
absl::StatusOr<Schedule> LoadSchedule(const std::string& path);
// Writes to standard output if the path is "-".
absl::Status SaveSchedule(const std::string& path, const Schedule& schedule);

}  // namespace baton::dist
