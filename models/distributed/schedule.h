// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"

// What each stage of a pipeline does, in which order: pure functions from
// (stages, micro-batches), run by dist::Stage and tested without any RPC.
namespace baton::dist {

enum class StageOp : uint8_t {
  kForward = 0,   // needs the input of the micro-batch, makes its output
  kBackward = 1,  // needs the gradient of that output, makes the input's
  kWeights = 2,   // makes the gradients that a backward has left for later
};

// One thing to do. Receiving what it needs and sending on what it makes are
// part of it. Value type.
struct Instruction {
  StageOp op = StageOp::kForward;
  int micro_batch = 0;
  static constexpr auto Fields() {
    return std::tuple{&Instruction::op, &Instruction::micro_batch};
  }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

enum class Schedule : uint8_t {
  // All forwards, then all backwards (Huang et al., "GPipe", NeurIPS 2019).
  // Every stage holds the activations of all micro-batches.
  kFillDrain = 0,
  // After a warm-up of forwards, backward and forward in turn (Narayanan et
  // al., "PipeDream", SOSP 2019; here with a flush at the end of each step).
  // Stage s of p holds those of at most p - s micro-batches.
  kOneForwardOneBackward = 1,
  // One-forward-one-backward whose backwards hurry: gradients of weights, which
  // no other stage waits for, fill the gaps (Qi et al., "Zero Bubble Pipeline
  // Parallelism", ICLR 2024; between its schedules H1 and H2). Stage s of p
  // holds the activations of at most 2(p - 1 - s) + 1 micro-batches, and in the
  // programs of TrainPrograms what the gradients of weights of 2s need.
  kZeroBubble = 2,
};

// The most micro-batches whose activations a stage holds at once, over RPC and
// on the devices of one process alike.
int MostHeld(Schedule schedule, int stage, int stages, int micro_batches);

// "fill_drain", "1f1b", "zero_bubble".
const char* NameOf(Schedule schedule);

// Program of every stage for one training step, first stage first. Every stage
// runs forwards, and backwards, in the order of the micro-batches, so gradients
// add up in one order for each schedule. Both counts are at least 1.
std::vector<std::vector<Instruction>> TrainPrograms(Schedule schedule,
                                                    int stages,
                                                    int micro_batches);

// The forwards alone.
std::vector<std::vector<Instruction>> EvalPrograms(int stages,
                                                   int micro_batches);

// An instruction and the stage that it is for.
struct IssuedInstruction {
  int stage = 0;
  Instruction instruction;
  friend bool operator==(const IssuedInstruction&,
                         const IssuedInstruction&) = default;
};
// The order in which one thread gives the programs to devices that work by
// themselves: the stages in turn, each its next instruction once what that
// needs has been given. What one stage sends the next one takes before the
// other sends again, so that a device never waits for more than it needs.
// Throws Error for programs that wait for each other.
std::vector<IssuedInstruction> MergePrograms(
    const std::vector<std::vector<Instruction>>& programs);

// Rows of a batch that make up one micro-batch: [begin, end).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Cuts `rows` into micro-batches of `split_size`; the last may be smaller.
// Both are at least 1.
std::vector<RowRange> SplitRows(int64_t rows, int64_t split_size);
// Into micro-batches of these sizes; throws Error unless each is at least 1 and
// they add up to `rows`.
std::vector<RowRange> SplitRows(int64_t rows,
                                const std::vector<int64_t>& sizes);

// InvalidArgument unless `program` does a forward of each of the micro-batches
// once and in order and, where it does any backward, the same of those, none
// before its forward, and likewise of weights after backwards.
absl::Status CheckProgram(const std::vector<Instruction>& program,
                          int micro_batches);

// "F0 F1 B0 W0 B1 W1".
std::string ToString(const std::vector<Instruction>& program);

}  // namespace baton::dist
