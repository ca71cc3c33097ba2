// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/device_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "core/status.h"

namespace baton::dist {
namespace {

constexpr std::array<StageOp, 3> kByRank = {
    StageOp::kBackward, StageOp::kForward, StageOp::kWeights};

// Gives the instructions one after the other, and knows when each would end.
class ListSchedule {
 public:
  ListSchedule(const std::vector<int>& device_of_stage,
               const std::vector<StageCosts>& costs,
               const std::vector<double>& sizes)
      : device_of_stage_(device_of_stage),
        costs_(costs),
        sizes_(sizes),
        given_(costs.size()) {
    for (size_t stage = 0; stage < stages(); ++stage) {
      most_held_.push_back(static_cast<size_t>(MostHeld(
          Schedule::kZeroBubble, static_cast<int>(stage),
          static_cast<int>(stages()), static_cast<int>(sizes.size()))));
    }
  }

  std::vector<IssuedInstruction> Run() {
    std::vector<IssuedInstruction> order;
    const size_t total = kByRank.size() * costs_.size() * sizes_.size();
    while (order.size() < total) order.push_back(Give());
    return order;
  }

 private:
  // When each of a stage's instructions given so far ends; they are given in
  // the order of the micro-batches.
  struct Given {
    std::array<std::vector<double>, 3> ends;  // by StageOp
    const std::vector<double>& of(StageOp op) const {
      return ends[static_cast<size_t>(op)];
    }
  };

  size_t stages() const { return costs_.size(); }

  // When what instruction `m` of the stage needs is there; none: not given yet.
  std::optional<double> NeedsEnd(size_t stage, StageOp op, size_t m) const {
    const auto end = [m](const std::vector<double>& ends) {
      return m < ends.size() ? std::optional(ends[m]) : std::nullopt;
    };
    const Given& here = given_[stage];
    if (op == StageOp::kWeights) return end(here.of(StageOp::kBackward));
    if (op == StageOp::kForward) {
      const size_t held = here.of(StageOp::kForward).size() -
                          here.of(StageOp::kBackward).size();
      if (held >= most_held_[stage]) return std::nullopt;
      return stage == 0 ? 0.0 : end(given_[stage - 1].of(StageOp::kForward));
    }
    if (!end(here.of(StageOp::kForward))) return std::nullopt;
    return stage + 1 == stages()
               ? end(here.of(StageOp::kForward))
               : end(given_[stage + 1].of(StageOp::kBackward));
  }

  IssuedInstruction Give() {
    // Earliest first; then by rank, micro-batch, and the later stage.
    using Key = std::tuple<double, size_t, size_t, size_t>;
    std::optional<Key> best;
    for (size_t stage = 0; stage < stages(); ++stage) {
      for (size_t rank = 0; rank < kByRank.size(); ++rank) {
        const size_t m = given_[stage].of(kByRank[rank]).size();
        if (m == sizes_.size()) continue;
        const auto needs = NeedsEnd(stage, kByRank[rank], m);
        if (!needs) continue;
        const double begin =
            std::max(*needs, free_at_[device_of_stage_[stage]]);
        const Key key{begin, rank, m, stages() - 1 - stage};
        if (!best || key < *best) best = key;
      }
    }
    Require(best.has_value(), "schedule", "instructions wait for each other");
    const auto [begin, rank, m, from_last] = *best;
    const size_t stage = stages() - 1 - from_last;
    const StageOp op = kByRank[rank];
    const double end = begin + sizes_[m] * costs_[stage].of(op);
    given_[stage].ends[static_cast<size_t>(op)].push_back(end);
    free_at_[device_of_stage_[stage]] = end;
    return {static_cast<int>(stage), {op, static_cast<int>(m)}};
  }

  const std::vector<int>& device_of_stage_;
  const std::vector<StageCosts>& costs_;
  const std::vector<double>& sizes_;  // of the micro-batches
  std::vector<size_t> most_held_;     // of each stage
  std::vector<Given> given_;
  std::map<int, double> free_at_;  // by device
};

}  // namespace

std::vector<double> GroupSizes(const std::vector<RowRange>& micro_batches,
                               size_t at_once) {
  std::vector<double> sizes;
  double rows = 0;
  for (size_t m = 0; m < micro_batches.size(); ++m) {
    if (m % at_once == 0) sizes.push_back(0);
    sizes.back() += static_cast<double>(micro_batches[m].size());
    rows += static_cast<double>(micro_batches[m].size());
  }
  const double mean = rows / static_cast<double>(sizes.size());
  for (double& size : sizes) size /= mean;
  return sizes;
}

std::vector<IssuedInstruction> ZeroBubbleOrder(
    const std::vector<int>& device_of_stage,
    const std::vector<StageCosts>& costs, const std::vector<double>& sizes) {
  Require(!costs.empty() && costs.size() == device_of_stage.size() &&
              !sizes.empty(),
          "schedule",
          "expected a device and costs for each of the stages, and "
          "a micro-batch; got ",
          device_of_stage.size(), ", ", costs.size(), " and ", sizes.size());
  return ListSchedule(device_of_stage, costs, sizes).Run();
}

}  // namespace baton::dist
