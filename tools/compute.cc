// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/compute.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "tools/command_line.h"

namespace baton::tools {
namespace {

absl::StatusOr<Device> ParseDevice(const std::string& text) {
  const auto device = Device::Parse(text);
  if (device.ok()) return device;
  return absl::InvalidArgumentError(
      absl::StrCat("--device: ", device.status().message()));
}

}  // namespace

absl::StatusOr<rpc::Compute> ComputeOf(const std::string& device,
                                       const std::string& dtype,
                                       bool deterministic) {
  rpc::Compute compute{.deterministic = deterministic};
  ASSIGN_OR_RETURN(compute.device, ParseDevice(device));
  compute.tf32 = dtype == "tf32";
  if (dtype == "bf16") compute.dtype = DType::kBF16;
  if (dtype == "fp16") compute.dtype = DType::kF16;
  RETURN_IF_ERROR(
      CheckWord("--dtype", dtype, {"fp32", "tf32", "bf16", "fp16"}));
  if (dtype != "fp32" && !compute.device.is_cuda())
    return WrongFlag("dtype", absl::StrCat(dtype, " needs --device=cuda"));
  return compute;
}

std::string DTypeFlag(const rpc::Compute& compute) {
  if (compute.dtype == DType::kBF16) return "bf16";
  if (compute.dtype == DType::kF16) return "fp16";
  return compute.tf32 ? "tf32" : "fp32";
}

absl::StatusOr<std::vector<std::string>> DealDevices(const std::string& list,
                                                     int workers, int gpus) {
  const std::vector<std::string> named = absl::StrSplit(list, ',');
  std::vector<std::string> all;
  for (const std::string& text : named) {
    RETURN_IF_ERROR(ParseDevice(text).status());
    if (text != "cuda") {
      all.push_back(text);
      continue;
    }
    if (gpus == 0) {
      return absl::FailedPreconditionError(
          "--device=cuda: this program sees no GPU here; where there is one, "
          "build with -DBATON_CUDA=ON and look whether nvidia-smi lists it, "
          "else leave --device out or give --device=cpu");
    }
    for (int gpu = 0; gpu < gpus; ++gpu)
      all.push_back(Device::Cuda(gpu).ToString());
  }
  std::vector<std::string> dealt;
  for (int i = 0; i < workers; ++i)
    dealt.push_back(all[static_cast<size_t>(i) % all.size()]);
  return dealt;
}

}  // namespace baton::tools
