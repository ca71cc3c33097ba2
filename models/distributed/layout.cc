// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/layout.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"

namespace baton::dist {
namespace {

double Between(const std::vector<double>& sums, size_t begin, size_t end) {
  return sums[end] - sums[begin];
}

std::vector<int64_t> SizesOf(const std::vector<RowRange>& parts) {
  std::vector<int64_t> sizes;
  for (const RowRange& part : parts) sizes.push_back(part.size());
  return sizes;
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
    : BatchSplit(profile, SizesOf(SplitRows(rows, split_size))) {}

BatchSplit::BatchSplit(const ClusterProfile& profile,
                       const std::vector<int64_t>& sizes)
    : size(*absl::c_max_element(sizes)),
      parts(SplitRows(absl::c_accumulate(sizes, int64_t{0}), sizes)) {
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
                         bool recompute, double most_bytes)
    : profile_(profile),
      parameter_copies_(parameter_copies),
      recompute_(recompute),
      most_bytes_(most_bytes),
      limits_(most_bytes > 0 ||
              absl::c_any_of(profile.places, [](const WorkerPlace& place) {
                return place.on_gpu();
              })) {}

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
  // A GPU uses its inputs where the window has them.
  const bool in_window =
      HasWindow(layout, stage) && PlaceOf(layout, stage)->on_gpu();
  return (in_window ? 0 : sums.input_bytes[begin]) +
         (recompute_ ? 0 : Between(sums.held_bytes, begin, end));
}

const WorkerPlace* LayoutCosts::PlaceOf(const StageLayout& layout,
                                        size_t stage) const {
  if (profile_.places.empty()) return nullptr;
  return &profile_.places[static_cast<size_t>(layout.worker(stage))];
}

bool LayoutCosts::HasWindow(const StageLayout& layout, size_t stage) const {
  if (stage == 0 || profile_.places.empty()) return false;
  const WorkerPlace& from = *PlaceOf(layout, stage - 1);
  // GPUs record no program that computes forwards again.
  return from.MayShareWindow(*PlaceOf(layout, stage)) &&
         !(from.on_gpu() && recompute_);
}

void LayoutCosts::AddWindows(const StageLayout& layout,
                             const std::vector<int>& most_open,
                             std::vector<double>& bytes) const {
  const BatchSplit& split = *layout.split;
  const double all = static_cast<double>(split.parts.back().end) /
                     static_cast<double>(split.size);
  for (size_t stage = 1; stage < layout.ends.size(); ++stage) {
    if (!HasWindow(layout, stage)) continue;
    // See SlotsOf (link_window.h).
    const double slots =
        PlaceOf(layout, stage)->on_gpu() ? all : most_open[stage - 1];
    const double window =
        slots * layout.units(stage - 1).input_bytes[layout.begin(stage)];
    for (const size_t end : {stage - 1, stage})
      bytes[static_cast<size_t>(layout.team->placed[end])] += window;
  }
}

std::vector<double> LayoutCosts::LeastBytes(const StageLayout& layout) const {
  std::vector<double> bytes = FixedBytes(layout);
  for (size_t stage = 0; stage < layout.ends.size(); ++stage) {
    const auto worker = static_cast<size_t>(layout.team->placed[stage]);
    bytes[worker] += HeldBytes(layout, stage);
  }
  AddWindows(layout, std::vector<int>(layout.ends.size(), 1), bytes);
  return bytes;
}

std::vector<double> LayoutCosts::PeakBytes(const StageLayout& layout,
                                           const Simulation& simulation) const {
  const BatchSplit& split = *layout.split;
  std::vector<double> bytes = FixedBytes(layout), peaks = bytes;
  std::vector<int> open(layout.ends.size(), 0), most_open = open;
  for (const TimedInstruction& timed : simulation.order) {
    const auto& [op, stage, m] = timed.instruction;
    int& of_stage = open[static_cast<size_t>(stage)];
    of_stage += op == StageOp::kForward      ? 1
                : op == StageOp::kWeightGrad ? 0
                                             : -1;
    int& most = most_open[static_cast<size_t>(stage)];
    most = std::max(most, of_stage);
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
  AddWindows(layout, most_open, peaks);
  return peaks;
}

LayoutCosts::Need LayoutCosts::LargestNeed(
    const StageTeam& team, const std::vector<double>& bytes) const {
  Need largest;
  for (size_t place = 0; place < bytes.size(); ++place) {
    const Need need = {bytes[place], LimitOf(team, place)};
    if (need.share() >= largest.share()) largest = need;
  }
  return largest;
}

double LayoutCosts::LimitOf(const StageTeam& team, size_t place) const {
  if (most_bytes_ > 0) return most_bytes_;
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  if (profile_.places.empty()) return kNoLimit;
  const WorkerPlace& here =
      profile_.places[static_cast<size_t>(team.workers[place])];
  if (!here.on_gpu()) return kNoLimit;
  const auto shares = [&](const WorkerPlace& other) {
    return here.SharesGpu(other);
  };
  // The last of them that was asked has seen what all have given back.
  double free = 0;
  for (const WorkerPlace& other : profile_.places)
    if (shares(other)) free = std::max(free, other.free_bytes);
  const auto sharing =
      std::count_if(team.workers.begin(), team.workers.end(), [&](int worker) {
        return shares(profile_.places[static_cast<size_t>(worker)]);
      });
  return kUsableShare * free / static_cast<double>(sharing);
}

}  // namespace baton::dist
