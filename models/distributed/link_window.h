// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/step_flags.h"
#include "core/stream.h"
#include "models/distributed/stage_routes.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/window.h"

// Neighbors on one machine pass values through windows in the steps of a plan:
// see docs/design/step_windows.md.
namespace baton::dist {

// The form of one value, which is the same in each step of a plan. Plain data.
struct ValueSpec {
  bool defined = false;
  DType dtype = DType::kF32;
  Shape shape;
  bool channels_last = false;  // dense in that order; false: row-major
  bool constant = false;       // see Outputs::constants

  static ValueSpec Of(const Tensor& value);
  // Returns true if a value of form `other` may take this one's place. Its
  // memory order may differ, and it may have become a constant, because nobody
  // needs its gradient.
  bool Fits(const ValueSpec& other) const;
  friend bool operator==(const ValueSpec&, const ValueSpec&) = default;
  static constexpr auto Fields() {
    return std::tuple{&ValueSpec::defined, &ValueSpec::dtype, &ValueSpec::shape,
                      &ValueSpec::channels_last, &ValueSpec::constant};
  }
};

// The forms of the values that go to another stage, or come back, for one
// micro-batch.
using ParcelSpec = std::vector<ValueSpec>;
ParcelSpec SpecOf(const Outputs& outputs);

// Returns the slot of each micro-batch, which the plan's program begins in
// order at the stage. When a micro-batch's gradient has come back, the next one
// may use its slot: the gradient proves that the values sent forward have been
// taken, and the gradient itself is taken before the next one can be sent. On
// GPUs each micro-batch has its own slot, because received values stay there
// for the whole step.
std::vector<int32_t> SlotsOf(const StepPlan& plan, int stage, Device device);

// Where a window has the values of one direction: a flag for each micro-batch,
// then the slots. Immutable.
class ParcelLayout {
 public:
  // Both are indexed by micro-batch. Throws Error if they are inconsistent.
  ParcelLayout(std::vector<ParcelSpec> parcels, std::vector<int32_t> slots);

  size_t bytes() const { return bytes_; }  // the size of the window
  const ParcelSpec& parcel(int micro_batch) const {
    return parcels_[static_cast<size_t>(micro_batch)];
  }
  uint64_t* Gate(const Window& window) const {
    return Flag(window, static_cast<int>(slots_.size()));
  }
  uint64_t* Flag(const Window& window, int micro_batch) const;
  // Returns views of the window. Throws Error if the window is too small.
  Values In(const Window& window, int micro_batch) const;

 private:
  const std::vector<ParcelSpec> parcels_;
  const std::vector<int32_t> slots_;
  std::vector<size_t> slot_begins_;
  size_t bytes_ = 0;
};

// One end of a link between two stages: a window of its own, which the other
// end writes, and the other end's window. Used by one thread, except GiveUp.
class LinkWindow {
 public:
  struct Side {
    Window window;
    ParcelLayout layout;
  };
  // `number` counts the steps of this end, whatever windows they use. Throws
  // Error if a window is too small for its layout.
  LinkWindow(Side in, Side out, std::shared_ptr<StepNumber> number);

  // On the CPU, waits until this end is done with earlier steps; later calls
  // belong to `step`. On GPUs the caller that enqueues a step begins its number
  // instead.
  void Begin(uint64_t step);
  // Ends all waits of the step, here and on this end's streams. Any thread may
  // call it.
  void GiveUp(uint64_t step) { step_->GiveUp(step); }

  // Copies the values and signals the other end, on a stream beside the current
  // one, after the work that the current stream has. Returns InvalidArgument if
  // the values' shapes are not the plan's. Gradients are sent as Outputs
  // without constants.
  absl::Status Send(int micro_batch, const Outputs& outputs);
  // Waits for the values on the current stream and returns them: on the CPU as
  // new tensors, on GPUs as views of the window, which are valid until the next
  // step. On the CPU returns DeadlineExceeded, or Cancelled if the step is
  // given up. On a GPU the values are arbitrary if the step is given up before
  // Drain has returned.
  absl::StatusOr<Outputs> Take(int micro_batch,
                               std::chrono::steady_clock::time_point deadline);
  // Waits until all work that was given to streams has ended.
  void Drain() const;

  // Each end has one more flag, the gate, for use on the current stream.
  // Raising it says that this end's part of the step is done; with `skip`, on
  // GPUs, it is raised as RaiseFlagUnless says. AwaitGate waits for the other
  // end's and returns errors as Take does.
  void RaiseGate() const;
  void RaiseGate(const Tensor& skip) const;
  absl::Status AwaitGate(std::chrono::steady_clock::time_point deadline) const;
  const uint64_t* gate() const { return in_.layout.Gate(in_.window); }

  // The stream that copies what is sent.
  Stream CopyStream() const { return Stream::ForCopies(device(), device()); }

 private:
  Device device() const { return step_->device(); }
  absl::Status Await(const uint64_t* flag,
                     std::chrono::steady_clock::time_point deadline) const;
  void Copy(const Tensor& slot, const Tensor& value) const;

  const Side in_, out_;
  const std::shared_ptr<StepNumber> step_;
};

// Windows by the stage at the other end.
using WindowMap = std::map<int, std::shared_ptr<LinkWindow>>;
// Returns the window of the link among those of a stage; null if it has none.
const LinkWindow* WindowOf(const WindowMap& windows, int stage,
                           const LinkEnds& link);

}  // namespace baton::dist
