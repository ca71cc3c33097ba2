// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/compute_flags.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "core/gpu_count.h"
#include "core/precision.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tools/compute.h"

ABSL_FLAG(std::string, device, "cpu",
          "where to compute: cpu, cuda or cuda:N for the N-th GPU");
ABSL_FLAG(std::string, dtype, "fp32",
          "of weights and activations: fp32, tf32 (fp32 whose products are "
          "rounded for tensor cores), bf16 or fp16; the last three need a GPU");
ABSL_FLAG(bool, deterministic, false,
          "equal calls give equal bits on GPUs, too, if more slowly");

namespace baton::tools {

absl::StatusOr<rpc::Compute> ComputeFromFlags(
    const std::optional<Launched>& launched) {
  std::string device = absl::GetFlag(FLAGS_device);
  if (launched.has_value() && device != "cpu") {
    ASSIGN_OR_RETURN(device, DeviceOf(*launched, device, GpuCount()));
  }
  ASSIGN_OR_RETURN(const rpc::Compute compute,
                   ComputeOf(device, absl::GetFlag(FLAGS_dtype),
                             absl::GetFlag(FLAGS_deterministic)));
  // Reports what is missing for a GPU.
  RETURN_IF_ERROR(Annotate(
      CatchErrors([&] { Tensor::Empty({1}, {.device = compute.device}); }),
      absl::StrCat("--device=", compute.device.ToString())));
  AllowTf32(compute.tf32);
  SetDeterministic(compute.deterministic);
  return compute;
}

}  // namespace baton::tools
