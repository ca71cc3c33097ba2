// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/link_window.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/cuda/ipc.h"
#include "core/status.h"
#include "core/tensor.h"

namespace baton::dist {
namespace {

constexpr char kWindowOp[] = "window";
constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Checked, because the spec comes from a peer.
size_t BytesOf(const ValueSpec& spec) {
  if (!spec.defined) return 0;
  Require(DTypeFromWire(static_cast<int>(spec.dtype)).has_value(), kWindowOp,
          "unknown dtype ", static_cast<int>(spec.dtype));
  Require(!spec.channels_last || spec.shape.rank() == 4, kWindowOp,
          "channels-last values of shape ", spec.shape.ToString());
  size_t bytes = SizeOf(spec.dtype);
  bool fits = true;
  for (int64_t dim : spec.shape) {
    fits &= dim >= 0 &&
            !__builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes);
  }
  constexpr size_t kMost = size_t{1} << 46;
  Require(fits && bytes <= kMost, kWindowOp, "values of shape ",
          spec.shape.ToString());
  return bytes;
}

Tensor ViewOf(const ValueSpec& spec, const std::shared_ptr<Storage>& storage,
              size_t at) {
  if (!spec.defined) return {};
  const Shape& shape = spec.shape;
  const auto first = static_cast<int64_t>(at / SizeOf(spec.dtype));
  if (!spec.channels_last) {
    return Tensor::FromStorage(storage, spec.dtype, shape,
                               ContiguousStrides(shape), first);
  }
  const Shape nhwc = {shape[0], shape[2], shape[3], shape[1]};
  return Tensor::FromStorage(storage, spec.dtype, nhwc, ContiguousStrides(nhwc),
                             first)
      .Permute({0, 3, 1, 2});
}

}  // namespace

ValueSpec ValueSpec::Of(const Tensor& value) {
  if (!value.defined()) return {};
  return {true, value.dtype(), value.shape(),
          value.SuggestFormat() == MemoryFormat::kChannelsLast};
}

bool ValueSpec::Fits(const ValueSpec& other) const {
  return defined == other.defined && dtype == other.dtype &&
         shape == other.shape && (!constant || other.constant);
}

ParcelSpec SpecOf(const Outputs& outputs) {
  ParcelSpec spec;
  for (const Tensor& value : outputs.values)
    spec.push_back(ValueSpec::Of(value));
  for (int32_t place : outputs.constants)
    spec.at(static_cast<size_t>(place)).constant = true;
  return spec;
}

std::vector<int32_t> SlotsOf(const StepPlan& plan, int stage, Device device) {
  std::vector<int32_t> slots(plan.micro_batches.size(), 0);
  if (device.is_cuda()) {
    std::iota(slots.begin(), slots.end(), 0);
    return slots;
  }
  std::set<int32_t> left;
  int32_t next = 0;
  for (const Instruction& step : plan.program) {
    if (step.stage != stage || step.op == StageOp::kWeightGrad) continue;
    int32_t& slot = slots.at(static_cast<size_t>(step.micro_batch));
    if (step.op != StageOp::kForward) {
      left.insert(slot);
    } else if (left.empty()) {
      slot = next++;
    } else {
      slot = left.extract(left.begin()).value();
    }
  }
  return slots;
}

ParcelLayout::ParcelLayout(std::vector<ParcelSpec> parcels,
                           std::vector<int32_t> slots)
    : parcels_(std::move(parcels)), slots_(std::move(slots)) {
  Require(parcels_.size() == slots_.size(), kWindowOp, parcels_.size(),
          " micro-batches for ", slots_.size(), " slots");
  const auto count = static_cast<int32_t>(slots_.size());
  std::vector<size_t> sizes(
      slots_.size());  // of the slots, some of them unused
  for (size_t m = 0; m < parcels_.size(); ++m) {
    Require(slots_[m] >= 0 && slots_[m] < count, kWindowOp, "slot ", slots_[m],
            " of ", count);
    size_t bytes = 0;
    for (const ValueSpec& spec : parcels_[m]) bytes += Aligned(BytesOf(spec));
    size_t& slot = sizes[static_cast<size_t>(slots_[m])];
    slot = std::max(slot, bytes);
  }
  const size_t flags = slots_.size() + 1;  // one for each micro-batch, and the
                                           // gate
  bytes_ = Aligned(Window::kFront + flags * sizeof(uint64_t));
  for (const size_t size : sizes) {
    slot_begins_.push_back(bytes_);
    bytes_ += size;
  }
}

uint64_t* ParcelLayout::Flag(const Window& window, int micro_batch) const {
  auto* const front = static_cast<char*>(window.storage()->data());
  return reinterpret_cast<uint64_t*>(front + Window::kFront) + micro_batch;
}

Values ParcelLayout::In(const Window& window, int micro_batch) const {
  const auto m = static_cast<size_t>(micro_batch);
  size_t at = slot_begins_[static_cast<size_t>(slots_[m])];
  Values values;
  for (const ValueSpec& spec : parcels_[m]) {
    values.push_back(ViewOf(spec, window.storage(), at));
    at += Aligned(BytesOf(spec));
  }
  return values;
}

const LinkWindow* WindowOf(const WindowMap& windows, int stage,
                           const LinkEnds& link) {
  if (stage != link.from && stage != link.to) return nullptr;
  const auto found = windows.find(stage == link.from ? link.to : link.from);
  return found == windows.end() ? nullptr : found->second.get();
}

LinkWindow::LinkWindow(Side in, Side out, std::shared_ptr<StepNumber> number)
    : in_(std::move(in)), out_(std::move(out)), step_(std::move(number)) {
  Require(in_.window.storage()->device() == device(), kWindowOp, "a step of ",
          device().ToString(), " for a window of another device");
  for (const Side* side : {&in_, &out_}) {
    Require(side->window.storage()->bytes() >= side->layout.bytes(), kWindowOp,
            side->window.storage()->bytes(), " bytes for ",
            side->layout.bytes());
  }
}

void LinkWindow::Begin(uint64_t step) {
  if (device().is_cuda()) return;
  Drain();
  step_->Begin(step);
}

void LinkWindow::RaiseGate() const {
  RaiseFlag(out_.layout.Gate(out_.window), *step_, CurrentStream(device()));
}

void LinkWindow::RaiseGate(const Tensor& skip) const {
  RaiseFlagUnless(skip, out_.layout.Gate(out_.window), *step_);
}

absl::Status LinkWindow::AwaitGate(
    std::chrono::steady_clock::time_point deadline) const {
  return Await(gate(), deadline);
}

absl::Status LinkWindow::Await(
    const uint64_t* flag,
    std::chrono::steady_clock::time_point deadline) const {
  if (!AwaitFlag(flag, *step_, CurrentStream(device()), deadline))
    return absl::DeadlineExceededError("it did not come");
  if (device().is_cpu() && step_->given_up(step_->step()))
    return absl::CancelledError("the step was given up");
  return absl::OkStatus();
}

void LinkWindow::Drain() const {
  CopyStream().Synchronize();
  CurrentStream(device()).Synchronize();
}

absl::Status LinkWindow::Send(int micro_batch, const Outputs& outputs) {
  const ParcelSpec& parcel = out_.layout.parcel(micro_batch);
  const bool fits =
      absl::c_equal(parcel, SpecOf(outputs),
                    [](const ValueSpec& planned, const ValueSpec& given) {
                      return planned.Fits(given);
                    });
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("the values of micro-batch ", micro_batch,
                     " are not of the shapes that they had in the first step "
                     "of this batch size, for which the window was made; set "
                     "PipelineOptions::windows to Windows::kOff"));
  }
  // This stream has already waited for the gradient that freed the slot.
  CopyStream().WaitFor(CurrentStream(device()));
  const Values slots = out_.layout.In(out_.window, micro_batch);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].defined() && slots[i].numel() > 0)
      Copy(slots[i], outputs.values[i]);
  }
  RaiseFlag(out_.layout.Flag(out_.window, micro_batch), *step_, CopyStream());
  return absl::OkStatus();
}

void LinkWindow::Copy(const Tensor& slot, const Tensor& value) const {
  const Stream copy_stream = CopyStream();
  const StreamScope scope(copy_stream);
  const bool same = value.device() == device() && device().is_cuda() &&
                    value.strides() == slot.strides();
  if (!same) {
    slot.CopyFrom(value);
    return;
  }
  // The copy engine does not take resources from kernels of other streams.
  cuda::CopyToSegment(slot, value, copy_stream);
}

absl::StatusOr<Outputs> LinkWindow::Take(
    int micro_batch, std::chrono::steady_clock::time_point deadline) {
  RETURN_IF_ERROR(Await(in_.layout.Flag(in_.window, micro_batch), deadline));
  Outputs outputs;
  for (const Tensor& slot : in_.layout.In(in_.window, micro_batch)) {
    // A GPU's slots stay until all workers have finished the step.
    const bool stays = device().is_cuda() || !slot.defined();
    outputs.values.push_back(stays ? slot : slot.Clone());
  }
  const ParcelSpec& parcel = in_.layout.parcel(micro_batch);
  for (size_t i = 0; i < parcel.size(); ++i) {
    if (parcel[i].constant)
      outputs.constants.push_back(static_cast<int32_t>(i));
  }
  return outputs;
}

}  // namespace baton::dist
