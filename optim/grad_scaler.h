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
  double scale = 65536;  // initial scale
  double growth = 2;     // factor after `interval` steps without overflow
  double backoff = 0.5;  // factor after an overflow
  int64_t interval = 2000;
};

// The scale on the host, for a caller that knows there whether a step
// overflowed. Thread-compatible.
class LossScale {
 public:
  // Throws Error for options out of range.
  explicit LossScale(const GradScalerOptions& options);
  double value() const { return value_; }
  void Adapt(bool overflowed);

 private:
  const GradScalerOptions options_;
  double value_;
  int64_t good_steps_ = 0;  // since it changed
};

// Loss scaling for f16, whose range is too small for many gradients: backward
// starts with a large factor, and steps divide by it. A step whose gradients
// overflow is skipped and makes the factor smaller (Micikevicius et al., "Mixed
// precision training", ICLR 2018).
//
//   optim::GradScaler scaler({Device::Cuda(0)}, {});
//   loss.Backward(scaler.scale(Device::Cuda(0)));
//   scaler.Step(sgd);
//
// Overflows are detected and handled on the devices: the host does not wait,
// and recorded steps (core/graph.h) can be scaled, too. Thread-compatible.
class GradScaler {
 public:
  // `devices` are those of the parameters and of the loss. Throws Error for
  // options out of range.
  GradScaler(const std::vector<Device>& devices,
             const GradScalerOptions& options);

  // The factor, f32 [], on one of the devices, to pass to Backward as the
  // gradient of an f32 loss. The tensor always stays the same one.
  const Tensor& scale(Device device) const;

  // Steps `optimizer` by the parameters' unscaled gradients; their grad() stays
  // unchanged. All devices take the step, or none does. Throws Error if there
  // is no gradient, as after Optimizer::BackwardStep: it must be known whether
  // one overflowed before the first is used.
  void Step(Optimizer& optimizer);

  // The entries are "scale", and "steps", the number of steps without overflow
  // since the scale changed.
  StateDict ExportState() const;
  absl::Status ImportState(const StateDict& state);

 private:
  struct Place {
    Tensor scale;
    Tensor overflow;  // 1 if the last step overflowed, else 0
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
