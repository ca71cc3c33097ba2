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

// How neighbours of one machine pass values in steps of one plan through
// windows: docs/design/step_windows.md.
namespace baton::dist {

// What one value is; a plan's are the same in each step. Plain data.
struct ValueSpec {
  bool defined = false;
  DType dtype = DType::kF32;
  Shape shape;
  bool channels_last = false;  // of dense memory; else row-major
  bool constant = false;       // as Outputs says

  static ValueSpec Of(const Tensor& value);
  // May the value of `other` stand where this one does? It may lie in another
  // order, and may have become a constant: its gradient is of use to nobody.
  bool Fits(const ValueSpec& other) const;
  friend bool operator==(const ValueSpec&, const ValueSpec&) = default;
  static constexpr auto Fields() {
    return std::tuple{&ValueSpec::defined, &ValueSpec::dtype, &ValueSpec::shape,
                      &ValueSpec::channels_last, &ValueSpec::constant};
  }
};

// What a stage gives another for one micro-batch, or gets back.
using ParcelSpec = std::vector<ValueSpec>;
ParcelSpec SpecOf(const Outputs& outputs);

// A slot for each micro-batch that the plan has the stage begin, in order of
// the micro-batches. One whose gradient has come back leaves its slot to the
// next: that gradient is the credit, for what went forward has been taken, and
// the slot of the gradient is taken, too, before the next one can be sent.
// On GPUs each has its own, where what came stays for the step.
std::vector<int32_t> SlotsOf(const StepPlan& plan, int stage, Device device);

// Where the parcels of one direction lie in a window: a flag for each
// micro-batch, then the slots. Immutable.
class ParcelLayout {
 public:
  // Both by micro-batch. Throws Error for what cannot be.
  ParcelLayout(std::vector<ParcelSpec> parcels, std::vector<int32_t> slots);

  size_t bytes() const { return bytes_; }  // of the window
  const ParcelSpec& parcel(int micro_batch) const {
    return parcels_[static_cast<size_t>(micro_batch)];
  }
  uint64_t* Gate(const Window& window) const {
    return Flag(window, static_cast<int>(slots_.size()));
  }
  uint64_t* Flag(const Window& window, int micro_batch) const;
  // Views of the window. Throws Error where it is too small.
  Values In(const Window& window, int micro_batch) const;

 private:
  const std::vector<ParcelSpec> parcels_;
  const std::vector<int32_t> slots_;
  size_t first_slot_ = 0, slot_bytes_ = 0, bytes_ = 0;
};

// One stage's end of a link: a window of its own, which the other end writes,
// and that of the other end. Used by one thread, but for GiveUp.
class LinkWindow {
 public:
  struct Side {
    Window window;
    ParcelLayout layout;
  };
  // `number`: of this end's steps, whatever windows they use. Throws Error
  // where a window is too small for its layout.
  LinkWindow(Side in, Side out, std::shared_ptr<StepNumber> number);

  // On the CPU, of all calls that follow: waits until this end is done with
  // former steps. On GPUs whoever gives them a step begins its number.
  void Begin(uint64_t step);
  // Any thread's: ends what waits, here and on this end's streams.
  void GiveUp(uint64_t step) { step_->GiveUp(step); }

  // Copies, and tells the other end, beside the current stream, which has been
  // given what makes the values. InvalidArgument for values of other shapes
  // than the plan's. Gradients are outputs without constants.
  absl::Status Send(int micro_batch, const Outputs& outputs);
  // On the current stream, once they are there: on the CPU tensors of their
  // own, on GPUs views of the window, which last until the next step. On the
  // CPU DeadlineExceeded, and Cancelled when the step is given up; on a GPU
  // they may be anything if it is given up before Drain has returned.
  absl::StatusOr<Outputs> Take(int micro_batch,
                               std::chrono::steady_clock::time_point deadline);
  // Until all that was given to streams has ended.
  void Drain() const;

  // A flag of each end beside those of micro-batches, on the current stream of
  // a GPU: that this end's part of the step is done or, with `skip`, as
  // RaiseFlagUnless says.
  void RaiseGate() const;
  void RaiseGate(const Tensor& skip) const;
  void AwaitGate() const;
  const uint64_t* gate() const { return in_.layout.Gate(in_.window); }

  // The stream that carries what is sent.
  Stream CopyStream() const { return Stream::ForCopies(device(), device()); }

 private:
  Device device() const { return step_->device(); }
  void Copy(const Tensor& slot, const Tensor& value) const;

  const Side in_, out_;
  const std::shared_ptr<StepNumber> step_;
};

// By the stage at the other end.
using WindowMap = std::map<int, std::shared_ptr<LinkWindow>>;

}  // namespace baton::dist
