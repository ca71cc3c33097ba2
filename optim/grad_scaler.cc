// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/grad_scaler.h"

#include <string>
#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"

namespace baton::optim {
namespace {

constexpr char kScaler[] = "grad_scaler";

Tensor Number(double value, Device device) {
  return Tensor::Full(Shape(), value, {.device = device});
}

void Check(const GradScalerOptions& options) {
  Require(options.scale > 0, kScaler, "scale is not positive: ", options.scale);
  Require(options.growth >= 1, kScaler, "growth is below 1: ", options.growth);
  Require(options.backoff > 0 && options.backoff <= 1, kScaler,
          "backoff is not in (0, 1]: ", options.backoff);
  Require(options.interval > 0, kScaler,
          "interval is not positive: ", options.interval);
}

}  // namespace

LossScale::LossScale(const GradScalerOptions& options)
    : options_(options), value_(options.scale) {
  Check(options);
}

void LossScale::Adapt(bool overflowed) {
  good_steps_ = overflowed ? 0 : good_steps_ + 1;
  if (overflowed) value_ *= options_.backoff;
  if (good_steps_ < options_.interval) return;
  value_ *= options_.growth;
  good_steps_ = 0;
}

GradScaler::GradScaler(const std::vector<Device>& devices,
                       const GradScalerOptions& options)
    : options_(options), devices_(devices) {
  Require(!devices.empty(), kScaler, "no devices");
  Check(options);
  for (Device device : devices) {
    places_[device.ToString()] = {.scale = Number(options.scale, device),
                                  .overflow = Number(0, device)};
  }
  steps_ = Number(0, devices.front());
}

const GradScaler::Place& GradScaler::At(Device device) const {
  const auto found = places_.find(device.ToString());
  Require(found != places_.end(), kScaler, "was not made for ",
          device.ToString());
  return found->second;
}

const Tensor& GradScaler::scale(Device device) const {
  return At(device).scale;
}

void GradScaler::Step(Optimizer& optimizer) {
  const std::map<const void*, Gradient> unscaled = Unscale(optimizer);
  if (unscaled.empty()) {
    Fail(kScaler, "no parameter has a gradient to look at before the step",
         absl::StatusCode::kFailedPrecondition);
  }
  ShareOverflow();
  optimizer.Step(
      [&](const Variable& parameter) {
        const auto found = unscaled.find(parameter.id());
        return found == unscaled.end() ? Gradient() : found->second;
      },
      [&](Device device) { return At(device).overflow; });
  Adapt();
}

std::map<const void*, Gradient> GradScaler::Unscale(
    const Optimizer& optimizer) {
  std::map<const void*, Gradient> unscaled;
  std::map<std::string, std::pair<std::vector<Tensor>, std::vector<Tensor>>>
      by_device;  // targets and sources
  for (const Variable& parameter : optimizer.parameters()) {
    const Gradient gradient = parameter.gradient();
    if (!gradient.defined()) continue;
    const Tensor& grad = gradient.values();
    const Tensor target = Tensor::Empty(
        grad.shape(),
        {.device = grad.device(), .format = grad.SuggestFormat()});
    unscaled[parameter.id()] = gradient.WithValues(target);
    auto& [targets, sources] = by_device[grad.device().ToString()];
    targets.push_back(target);
    sources.push_back(grad);
  }
  for (Device device : devices_) {
    const Place& place = At(device);
    place.overflow.Fill(0);
    const auto& [targets, sources] = by_device[device.ToString()];
    ops::UnscaleMany(targets, sources, place.scale, place.overflow);
  }
  return unscaled;
}

// If one device has an overflow, sets it on all devices.
void GradScaler::ShareOverflow() {
  const Device first = devices_.front();
  Tensor any = At(first).overflow;
  for (Device device : devices_) {
    if (device != first) any = ops::Maximum(any, At(device).overflow.To(first));
  }
  for (Device device : devices_) At(device).overflow.CopyFrom(any.To(device));
}

void GradScaler::Adapt() {
  const Device first = devices_.front();
  const auto& [scale, overflow] = At(first);
  const Tensor zero = Number(0, first);
  const Tensor failed = ops::Greater(overflow, zero);
  const Tensor steps = ops::Where(failed, zero, ops::AddScalar(steps_, 1));
  const Tensor grows = ops::GreaterEqual(
      steps, Number(static_cast<double>(options_.interval), first));
  const Tensor grown =
      ops::Where(grows, ops::MulScalar(scale, options_.growth), scale);
  const Tensor next =
      ops::Where(failed, ops::MulScalar(scale, options_.backoff), grown);
  steps_.CopyFrom(ops::Where(grows, zero, steps));
  for (Device device : devices_) At(device).scale.CopyFrom(next.To(device));
}

StateDict GradScaler::ExportState() const {
  return {{"scale", scale(devices_.front()).Clone()},
          {"steps", steps_.Clone()}};
}

absl::Status GradScaler::ImportState(const StateDict& state) {
  for (const char* name : {"scale", "steps"}) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.numel() != 1) {
      return absl::InvalidArgumentError(
          std::string("grad scaler state: expected one number ") + name);
    }
  }
  return CatchErrors([&] {
    for (const auto& [device, place] : places_)
      place.scale.Fill(state.at("scale").Item());
    steps_.Fill(state.at("steps").Item());
  });
}

}  // namespace baton::optim
