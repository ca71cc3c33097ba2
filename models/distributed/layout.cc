// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/layout.h"

#include <algorithm>

namespace baton::dist {
namespace {

double Between(const std::vector<double>& sums, size_t begin, size_t end) {
  return sums[end] - sums[begin];
}

}  // namespace

UnitSums::UnitSums(const Profile& profile, int64_t micro_batch)
    : input_bytes{profile.input_bytes * static_cast<double>(micro_batch)} {
  const std::vector<UnitCosts> costs = profile.At(micro_batch);
  for (size_t i = 0; i < costs.size(); ++i) {
    const auto& [seconds, held, output] = costs[i];
    forward.push_back(forward.back() + seconds.forward);
    input_grad.push_back(input_grad.back() + seconds.input_grad);
    weight_grad.push_back(weight_grad.back() + seconds.weight_grad);
    held_bytes.push_back(held_bytes.back() + held);
    parameter_bytes.push_back(parameter_bytes.back() +
                              profile.parameter_bytes[i]);
    input_bytes.push_back(output);
  }
}

double UnitSums::step_s() const {
  return forward.back() + input_grad.back() + weight_grad.back();
}

BatchSplit::BatchSplit(const ClusterProfile& profile, int64_t rows,
                       int64_t split_size)
    : size(split_size), parts(SplitRows(rows, split_size)) {
  for (const Profile& worker : profile.workers)
    units.emplace_back(worker, size);
  for (const RowRange& part : parts) {
    const UnitSums sums(profile.workers.front(), part.size());
    shares.push_back(sums.step_s() / units.front().step_s());
    all += shares.back();
  }
}

int StageLayout::worker(size_t stage) const {
  return team->workers[static_cast<size_t>(team->placed[stage])];
}

const UnitSums& StageLayout::units(size_t stage) const {
  return split->units[static_cast<size_t>(worker(stage))];
}

LayoutCosts::LayoutCosts(const ClusterProfile& profile, double parameter_copies,
                         bool recompute)
    : profile_(profile),
      parameter_copies_(parameter_copies),
      recompute_(recompute) {}

double LayoutCosts::LeastSecondsOfLast(const StageLayout& layout) const {
  const BatchSplit& split = *layout.split;
  const std::vector<int>& placed = layout.team->placed;
  const size_t last = layout.ends.size() - 1;
  double before = 0, after = 0, forced = 0, weights = 0;
  bool began = false;
  for (size_t stage = 0; stage <= last; ++stage) {
    const StageCosts costs = CostsOf(layout, stage);
    if (placed[stage] == placed[last]) {
      began = true;
      forced += split.all * (costs.forward + costs.input_grad);
      weights += split.all * costs.weight_grad;
    } else if (!began) {
      before += split.shares.front() * costs.forward;
      after += split.shares.back() * costs.input_grad;
    }
  }
  return before + forced + std::max(weights, after);
}

StageCosts LayoutCosts::CostsOf(const StageLayout& layout, size_t stage) const {
  const UnitSums& sums = layout.units(stage);
  const size_t begin = layout.begin(stage), end = layout.ends[stage];
  StageCosts costs = {Between(sums.forward, begin, end),
                      Between(sums.input_grad, begin, end),
                      Between(sums.weight_grad, begin, end)};
  if (recompute_) costs.input_grad += costs.forward;
  return costs;
}

Workload LayoutCosts::WorkOf(const StageLayout& layout) const {
  Workload work;
  work.worker_of_stage = layout.team->placed;
  work.sizes = layout.split->shares;
  work.micro_batches = static_cast<int>(work.sizes.size());
  for (size_t stage = 0; stage < layout.ends.size(); ++stage) {
    work.costs.push_back(CostsOf(layout, stage));
    if (stage == 0) continue;
    const auto from = static_cast<size_t>(layout.worker(stage - 1));
    const auto to = static_cast<size_t>(layout.worker(stage));
    const LinkCosts& there = profile_.links[from][to];
    const LinkCosts& back = profile_.links[to][from];
    work.transfers.push_back(
        layout.units(stage - 1).input_bytes[layout.begin(stage)] *
        std::max(there.seconds_per_byte, back.seconds_per_byte));
    work.link = std::max({work.link, there.latency_s, back.latency_s});
  }
  return work;
}

std::vector<double> LayoutCosts::FixedBytes(const StageLayout& layout) const {
  std::vector<double> bytes(layout.team->workers.size(), 0), again = bytes;
  for (size_t stage = 0; stage < layout.ends.size(); ++stage) {
    const UnitSums& sums = layout.units(stage);
    const auto worker = static_cast<size_t>(layout.team->placed[stage]);
    const size_t begin = layout.begin(stage), end = layout.ends[stage];
    bytes[worker] +=
        parameter_copies_ * Between(sums.parameter_bytes, begin, end);
    // Memory of the one micro-batch whose forward is repeated.
    if (recompute_)
      again[worker] =
          std::max(again[worker], Between(sums.held_bytes, begin, end));
  }
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] += again[i];
  return bytes;
}

double LayoutCosts::HeldBytes(const StageLayout& layout, size_t stage) const {
  const UnitSums& sums = layout.units(stage);
  const size_t begin = layout.begin(stage), end = layout.ends[stage];
  return sums.input_bytes[begin] +
         (recompute_ ? 0 : Between(sums.held_bytes, begin, end));
}

std::vector<double> LayoutCosts::LeastBytes(const StageLayout& layout) const {
  std::vector<double> bytes = FixedBytes(layout);
  for (size_t stage = 0; stage < layout.ends.size(); ++stage) {
    const auto worker = static_cast<size_t>(layout.team->placed[stage]);
    bytes[worker] += HeldBytes(layout, stage);
  }
  return bytes;
}

std::vector<double> LayoutCosts::PeakBytes(const StageLayout& layout,
                                           const Simulation& simulation) const {
  const BatchSplit& split = *layout.split;
  std::vector<double> bytes = FixedBytes(layout), peaks = bytes;
  for (const TimedInstruction& timed : simulation.order) {
    const auto& [op, stage, m] = timed.instruction;
    const auto worker = static_cast<size_t>(timed.worker);
    const double held =
        HeldBytes(layout, static_cast<size_t>(stage)) *
        static_cast<double>(split.parts[static_cast<size_t>(m)].size()) /
        static_cast<double>(split.size);
    if (op == StageOp::kForward) bytes[worker] += held;
    peaks[worker] = std::max(peaks[worker], bytes[worker]);
    if (op == StageOp::kWeightGrad || op == StageOp::kBackward)
      bytes[worker] -= held;
  }
  return peaks;
}

}  // namespace baton::dist
