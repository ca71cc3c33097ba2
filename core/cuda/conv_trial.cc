// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/conv_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "core/cuda/delay.h"
#include "core/log.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

constexpr int64_t kSamples = 4096;
// The time that the host takes to enqueue a run while others use its cores.
constexpr std::chrono::microseconds kGiven{30};

void LogPassedOver(const ConvPlan& plan, const char* why) {
  LogDebug("convolutions: passed over engine ", plan.choice().engine, ": ",
           why);
}

}  // namespace

ConvTrial::ConvTrial(const Launch& launch, cudnnHandle_t handle,
                     const ConvOperands& operands, const Tensor& sum)
    : handle_(handle),
      operands_(operands),
      sum_(sum),
      stream_(CurrentStream(Device::Cuda(launch.device()))),
      begin_(stream_.device()),
      end_(stream_.device()) {}

double ConvTrial::Time(const ConvPlan& plan, void* workspace, double best) {
  constexpr double kHopeless = 3, kShort = 0.3;
  try {
    Batch(plan, workspace, 1);  // loads kernels
    const double first = Batch(plan, workspace, 1);
    if (first > kHopeless * best) return kNever;
    // The shorter a run is, the more its beginning and end count.
    const int runs = first < kShort ? 5 : 1;
    std::array<double, 3> times = {};
    for (double& time : times) time = Batch(plan, workspace, runs);
    std::sort(times.begin(), times.end());
    return times[1];
  } catch (const Error& error) {
    LogPassedOver(plan, error.what());
    return kNever;
  }
}

double ConvTrial::Batch(const ConvPlan& plan, void* workspace, int runs) {
  Delay(stream_, kGiven * (runs + 1));
  begin_.Record(stream_);
  for (int i = 0; i < runs; ++i) plan.Run(handle_, operands_, workspace);
  end_.Record(stream_);
  end_.Synchronize();
  return end_.MillisecondsSince(begin_) / runs;
}

// The mark is as large as the results, so that rounding hides neither of them.
bool ConvTrial::Adds(const ConvPlan& plan, void* workspace) {
  if (!plan.accumulates()) return true;
  try {
    const std::vector<double> alone = SumFrom(0, plan, workspace);
    double mark = 0;
    for (const double value : alone) mark = std::max(mark, std::abs(value));
    if (mark == 0) mark = 1;
    const std::vector<double> marked = SumFrom(mark, plan, workspace);
    double added = 0;
    for (size_t i = 0; i < alone.size(); ++i) added += marked[i] - alone[i];
    if (std::abs(added / (mark * alone.size()) - 1) < 0.1) return true;
    LogPassedOver(plan, "it does not add to its output");
  } catch (const Error& error) {
    LogPassedOver(plan, error.what());
  }
  return false;
}

std::vector<double> ConvTrial::SumFrom(double before, const ConvPlan& plan,
                                       void* workspace) {
  sum_.Fill(before);
  plan.Run(handle_, operands_, workspace);
  const int64_t step = std::max<int64_t>(1, sum_.numel() / kSamples);
  return sum_.Slice(0, 0, sum_.numel(), step)
      .To(Device::Cpu())
      .To(DType::kF64)
      .ToVector<double>();
}

}  // namespace baton::cuda
