// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/storage.h"
#include "core/stream.h"
#include "core/tensor.h"

// Streams of one process use flags to tell streams of another process on the
// same machine that something has been written; neither host takes part. A flag
// is a u64 in memory that both see. It begins as 0 and is raised to the number
// of the step that the work belongs to, so that a flag left behind by a failed
// step has no meaning in the next. A wait does not depend on the other process:
// the waiter's own host can give the step up.
//
//   StepNumber step(device);          // the sender's, and another the waiter's
//   step.Begin(7);
//   slot.CopyFrom(x);                 // on `stream`, into the waiter's memory
//   RaiseFlag(flag, step, stream);
//                                     // and there:
//   AwaitFlag(flag, step, stream, deadline);
//   y.CopyFrom(slot);                 // on `stream`
//   stream.Synchronize();
//   if (step.given_up(7)) ...         // y may be anything
namespace baton {

// The step that the work of some streams of this process belongs to, and the
// last step that was given up. A recorded graph (core/graph.h) reads both at
// each replay. Thread-safe.
class StepNumber {
 public:
  // For streams of `device`.
  explicit StepNumber(Device device);

  // Begins `step`, which must be above 0: it applies to the flags that are
  // raised and awaited from now on. The streams' earlier work must be finished,
  // because it would use the new number.
  void Begin(uint64_t step);
  // Like the above, but in the order of `stream`, which must be a GPU's.
  void Begin(uint64_t step, const Stream& stream);
  uint64_t step() const;
  // Ends the waits of that step and of earlier ones, and keeps work after such
  // a wait from raising flags. Takes effect within about a millisecond,
  // whatever the state of the other process.
  void GiveUp(uint64_t step);
  // If this is false after the streams have finished, every flag that they
  // waited for was raised.
  bool given_up(uint64_t step) const;
  // The newest step that DecideStep has found to count.
  uint64_t decided() const;

  Device device() const { return device_; }
  // Three words for kernels: the step, the last step that was given up, and the
  // newest step that was decided to count.
  uint64_t* words() const { return words_; }

 private:
  std::atomic_ref<uint64_t> word(int which) const {
    return std::atomic_ref<uint64_t>(words_[which]);
  }

  const Device device_;
  const std::shared_ptr<Storage> memory_;
  uint64_t* const words_;
};

// When `stream` has finished its present work, raises the flag to the present
// step, unless the step is given up. An observer of the flag also sees what
// `stream` has written. On the CPU this happens at once.
void RaiseFlag(uint64_t* flag, const StepNumber& step, const Stream& stream);

// Makes later work of `stream` wait until the flag has reached the present
// step, or the step is given up. On the CPU the call itself waits, and returns
// false if neither has happened by the deadline; GPUs ignore the deadline.
bool AwaitFlag(const uint64_t* flag, const StepNumber& step,
               const Stream& stream,
               std::chrono::steady_clock::time_point deadline);

// Lets several processes agree whether a step counts, on GPUs only: each
// process raises a flag of another one for its own part. One process awaits all
// flags and decides, and raises flags by which the others make the same
// decision.
//
// Decides on the device's current stream: the step counts if `flag` has been
// raised to it or, if `flag` is null, if it is not given up. `skip`, an f32 []
// on that GPU, becomes 0 if the step counts, and 1 if not.
void DecideStep(const uint64_t* flag, const StepNumber& step,
                const Tensor& skip);
// Raises the flag on the same stream, unless `skip` is 1, even if the step has
// been given up since.
void RaiseFlagUnless(const Tensor& skip, uint64_t* flag,
                     const StepNumber& step);

}  // namespace baton
