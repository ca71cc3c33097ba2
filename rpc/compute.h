// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"

namespace baton::rpc {

// How a worker computes, as it declares to the other workers. Value type.
struct Compute {
  // The device of modules that name no other device, and of tensors that arrive
  // from other workers' GPUs.
  Device device = Device::Cpu();
  // The dtype of such modules' weights (nn::Module::LowerPrecision): kF32,
  // kBF16 or kF16.
  DType dtype = DType::kF32;
  // Settings of the process (core/precision.h).
  bool tf32 = false;
  bool deterministic = false;

  // The device, then each field that differs from its default: "cuda:1 bf16
  // deterministic".
  std::string ToString() const;
  // Parses the result of ToString; "" is the CPU. Returns InvalidArgument for
  // other texts, since `text` may come from an untrusted peer.
  static absl::StatusOr<Compute> Parse(const std::string& text);
  friend bool operator==(const Compute&, const Compute&) = default;
};

}  // namespace baton::rpc
