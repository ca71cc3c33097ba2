// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/rates.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph.h"
#include "core/status.h"

namespace baton::optim {
namespace {

constexpr char kSteps[] = "steps";
constexpr char kRates[] = "lr";
constexpr char kFirstRates[] = "initial_lr";

}  // namespace

void RequireNoRecording(const char* what) {
  if (!Graph::IsRecording()) return;
  Fail("optimizer", absl::StrCat(what, " within a recording: step before it"),
       absl::StatusCode::kFailedPrecondition);
}

void Rates::Set(size_t group, double lr) {
  double& now = now_.at(group);
  if (lr == now) return;
  if (!on_gpu_[group].empty()) RequireNoRecording("a new learning rate");
  now = lr;
  for (const auto& [gpu, rate] : on_gpu_[group]) rate.Fill(lr);
}

Tensor Rates::On(size_t group, Device device) {
  if (device.is_cpu()) return Tensor();
  Tensor& rate = on_gpu_[group][device.index()];
  if (!rate.defined()) {
    RequireNoRecording("the first step on a GPU");
    rate = Tensor::Full(Shape(), now_[group],
                        {.dtype = DType::kF64, .device = device});
  }
  return rate;
}

void Rates::Obey() {
  if (schedule_ == nullptr) return;
  for (size_t group = 0; group < groups(); ++group)
    Set(group, schedule_(base_[group], steps_));
}

void Rates::Follow(Schedule schedule) {
  schedule_ = std::move(schedule);
  Obey();
}

void Rates::Advance() {
  ++steps_;
  Obey();
}

void Rates::GoBack() {
  --steps_;
  Obey();
}

std::map<std::string, Tensor> Rates::Export() const {
  const auto list = [](const std::vector<double>& values) {
    return Tensor::From(values, {static_cast<int64_t>(values.size())});
  };
  return {{kSteps, Tensor::From<int64_t>({steps_}, Shape())},
          {kRates, list(now_)},
          {kFirstRates, list(base_)}};
}

absl::Status Rates::Import(const std::map<std::string, Tensor>& state) {
  std::vector<double> base = base_, now = now_;
  std::vector<double> steps = {static_cast<double>(steps_)};
  for (const auto& [key, values] :
       {std::pair{kRates, &now}, std::pair{kFirstRates, &base},
        std::pair{kSteps, &steps}}) {
    const auto found = state.find(key);
    if (found == state.end()) continue;
    if (found->second.numel() != static_cast<int64_t>(values->size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("optimizer state ", key, ": expected ", values->size(),
                       " numbers, got ", found->second.ToString()));
    }
    *values = found->second.To(Device::Cpu())
                  .To(DType::kF64)
                  .Contiguous()
                  .ToVector<double>();
  }
  base_ = base;
  steps_ = static_cast<int64_t>(steps.front());
  for (size_t group = 0; group < groups(); ++group) Set(group, now[group]);
  return absl::OkStatus();
}

bool Rates::IsKey(const std::string& key) {
  return key == kSteps || key == kRates || key == kFirstRates;
}

}  // namespace baton::optim
