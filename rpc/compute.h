// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"

namespace baton::rpc {

// How a worker computes; the others are told. Value type.
struct Compute {
  // Where modules are placed that name no other device, and where tensors that
  // are on other workers' GPUs come to.
  Device device = Device::Cpu();
  // Of the weights of such modules (nn::Module::LowerPrecision): kF32, kBF16 or
  // kF16.
  DType dtype = DType::kF32;
  // Of the process (core/precision.h).
  bool tf32 = false;
  bool deterministic = false;

  // The device, then what differs from the above: "cuda:1 bf16 deterministic".
  std::string ToString() const;
  // Reads that; "" is the CPU. InvalidArgument for other texts, which may be a
  // stranger's.
  static absl::StatusOr<Compute> Parse(const std::string& text);
  friend bool operator==(const Compute&, const Compute&) = default;
};

}  // namespace baton::rpc
