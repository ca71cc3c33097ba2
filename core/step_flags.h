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

// Flags by which the streams of one process tell those of another, on the same
// machine, that something has been written, without either host. A flag is a
// u64 in memory that both see, begins as 0, and is raised to the number of the
// step that the work belongs to, so that one that a broken step has left behind
// means nothing to the next. No wait hangs on the other process: the waiter's
// own host can give the step up.
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

// The step that the work of some streams of this process belongs to, and up to
// which steps are given up. A recorded graph (core/graph.h) reads both at each
// replay. Thread-safe.
class StepNumber {
 public:
  // For streams of that GPU, or of the CPU.
  explicit StepNumber(Device device);

  // Of what is raised and awaited from now on, `step` > 0. What the streams
  // were given before has run: it would take the new number for its own.
  void Begin(uint64_t step);
  // The same for a GPU, in the order of the stream that all this hangs on.
  void Begin(uint64_t step, const Stream& stream);
  uint64_t step() const;
  // Ends the waits of that step and of those before it, and keeps flags from
  // being raised by what comes after such a wait: within about a millisecond,
  // in whatever state the other process is.
  void GiveUp(uint64_t step);
  // False once its streams are done: every flag that they waited for was
  // raised.
  bool given_up(uint64_t step) const;
  // The newest step that DecideStep has found to count.
  uint64_t decided() const;

  Device device() const { return device_; }
  // For kernels: the step, and up to which they are given up.
  uint64_t* words() const { return words_; }

 private:
  std::atomic_ref<uint64_t> word(int which) const {
    return std::atomic_ref<uint64_t>(words_[which]);
  }

  const Device device_;
  const std::shared_ptr<Storage> memory_;
  uint64_t* const words_;
};

// When `stream` has done what it has been given by now, raises the flag to the
// present step, unless that is given up. Whoever sees the flag sees what
// `stream` has written. On the CPU at once.
void RaiseFlag(uint64_t* flag, const StepNumber& step, const Stream& stream);

// What `stream` is given from now on runs when the flag has reached the present
// step, or this is given up. On the CPU the call itself waits: false if neither
// has come by the deadline, to which GPUs pay no heed.
bool AwaitFlag(const uint64_t* flag, const StepNumber& step,
               const Stream& stream,
               std::chrono::steady_clock::time_point deadline);

// The word of several processes on whether a step counts, on GPUs alone: each
// raises a flag of another one's for its own part, one awaits them all and
// decides, and raises flags by which the others decide likewise.
//
// On the device's current stream: the step counts where `flag` has been raised
// to it or, without a flag, where it is not given up. `skip`, an f32 [] of that
// GPU, becomes 0 then, and else 1.
void DecideStep(const uint64_t* flag, const StepNumber& step,
                const Tensor& skip);
// There: raises the flag unless `skip` is 1, whatever was given up since.
void RaiseFlagUnless(const Tensor& skip, uint64_t* flag,
                     const StepNumber& step);

}  // namespace baton
