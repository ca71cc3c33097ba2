// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "optim/optimizer.h"

namespace baton::optim {

struct GradScalerOptions {
  double scale = 65536;  // to begin with
  double growth = 2;     // of the scale after `interval` steps without overflow
  double backoff = 0.5;  // of the scale after an overflow
  int64_t interval = 2000;
};

// Loss scaling for f16, whose range is too small for many gradients: backward
// begins with a large factor, steps divide by it, and a step whose gradients
// overflowed is left out and makes the factor smaller (Micikevicius et al.,
// "Mixed precision training", ICLR 2018).
//
//   optim::GradScaler scaler({Device::Cuda(0)}, {});
//   loss.Backward(scaler.scale(Device::Cuda(0)));
//   scaler.Step(sgd);
//
// Whether gradients overflowed, and what follows, is found and done on the
// devices: nothing waits, and recorded steps (core/graph.h) scale too.
// Thread-compatible.
class GradScaler {
 public:
  // `devices`: those of the parameters and of the loss. Throws Error on options
  // out of range.
  GradScaler(const std::vector<Device>& devices,
             const GradScalerOptions& options);

  // The factor, f32 [], on one of the devices: Backward's gradient of an f32
  // loss. The tensor stays the same one.
  const Tensor& scale(Device device) const;

  // The step of `optimizer` by the parameters' unscaled gradients; their grad()
  // stays as it is. All devices take the step, or none does. Throws Error where
  // there is no gradient, as after Optimizer::BackwardStep: whether one
  // overflowed must be known before the first is used.
  void Step(Optimizer& optimizer);

  // "scale", and "steps" without overflow since it changed.
  StateDict ExportState() const;
  absl::Status ImportState(const StateDict& state);

 private:
  struct Place {
    Tensor scale;
    Tensor overflow;  // of the last step: 1 or 0
  };
  const Place& At(Device device) const;
  std::map<const void*, Gradient> Unscale(const Optimizer& optimizer);
  void ShareOverflow();
  void Adapt();

  const GradScalerOptions options_;
  const std::vector<Device> devices_;
  std::map<std::string, Place> places_;  // by device
  Tensor steps_;                         // f32 [], on the first device
};

}  // namespace baton::optim
