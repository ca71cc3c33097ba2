// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// What each worker of a pipeline does in one step, in which order, as plain
// data: made by a generator (schedules.h) or read from a file, judged by a
// simulation (simulation.h), run by dist::Pipeline and dist::DevicePipeline.
namespace baton::dist {

enum class StageOp : uint8_t {
  kForward = 0,     // F: needs the input of a micro-batch, makes its output
  kInputGrad = 1,   // B: needs the output's gradient, makes the input's
  kWeightGrad = 2,  // W: makes the gradients of weights that a B has left
  kBackward = 3,    // BW: both in one
};

// "F", "B", "W", "BW".
const char* NameOf(StageOp op);

// One thing to do. Receiving what it needs and sending on what it makes are
// part of it. Value type.
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

// What one worker does, in this order.
using Program = std::vector<Instruction>;

// A worker is whatever does one thing after the other: a process, or a device
// of one. It may have several stages; each stage is at one worker. Value type.
struct Schedule {
  std::string name;  // one word, such as "1f1b"
  std::vector<Program> workers;

  int stages() const;  // the largest that an instruction names, and one
  int micro_batches() const;
  // The worker of each stage; -1 for a stage without instructions.
  std::vector<int> worker_of_stage() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// InvalidArgument unless `program` does a forward of each micro-batch once and
// in order for each of `stages` and for no other, and, for a stage of which it
// does any backward, likewise B and later W, or BW, of each, none before what
// it needs of the same stage. So gradients add up in one order, whatever the
// schedule.
absl::Status CheckProgram(const Program& program,
                          const std::vector<int>& stages, int micro_batches);

// InvalidArgument unless every worker's program is right for its stages, which
// are all there are, all train or none does, and no workers wait for each
// other.
absl::Status CheckSchedule(const Schedule& schedule);

// "0F2" is the forward of micro-batch 2 at stage 0; "1BW2", "1B2", "1W2".
std::string ToString(const Instruction& instruction);
// "0F0 0F1 0BW0 0BW1".
std::string ToString(const Program& program);
// A file of a schedule: its name, then a line for each worker.
//   schedule 1f1b
//   worker 0: 0F0 0F1 0BW0 0BW1
//   worker 1: 1F0 1BW0 1F1 1BW1
std::string ToString(const Schedule& schedule);

// From such a text; lines that begin with # and empty ones do not count.
// InvalidArgument names the line that is wrong, or says as CheckSchedule does
// why the schedule cannot run.
absl::StatusOr<Schedule> ParseSchedule(const std::string& text);
// NotFound, or as ParseSchedule with the path.
absl::StatusOr<Schedule> LoadSchedule(const std::string& path);
// To standard output where the path is "-".
absl::Status SaveSchedule(const std::string& path, const Schedule& schedule);

}  // namespace baton::dist
