// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/workload.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace baton::dist {

double StageCosts::of(StageOp op) const {
  switch (op) {
    case StageOp::kForward:
      return forward;
    case StageOp::kInputGrad:
      return input_grad;
    case StageOp::kWeightGrad:
      return weight_grad;
    case StageOp::kBackward:
      return input_grad + weight_grad;
  }
  return 0;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

int Workload::workers() const {
  return worker_of_stage.empty()
             ? 0
             : 1 + *std::max_element(worker_of_stage.begin(),
                                     worker_of_stage.end());
}

std::vector<int> Workload::stages_of_worker() const {
  std::vector<int> counts(static_cast<size_t>(workers()), 0);
  for (int worker : worker_of_stage) ++counts[static_cast<size_t>(worker)];
  return counts;
}

StageCosts Workload::costs_of(int stage) const {
  return costs.empty() ? StageCosts() : costs[static_cast<size_t>(stage)];
}

double Workload::size_of(int micro_batch) const {
  return sizes.empty() ? 1 : sizes[static_cast<size_t>(micro_batch)];
}

absl::Status CheckWorkload(const Workload& work) {
  const std::vector<int>& workers = work.worker_of_stage;
  const size_t micro_batches = static_cast<size_t>(work.micro_batches);
  const auto wrong = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  if (workers.empty() || work.micro_batches < 1) {
    return wrong("expected at least one stage and micro-batch, got ",
                 workers.size(), " and ", work.micro_batches);
  }
  for (int worker : workers) {
    if (worker < 0 || worker >= work.stages())
      return wrong("there is no worker ", worker);
  }
  for (int stages : work.stages_of_worker()) {
    if (stages == 0) return wrong("a worker has no stage");
  }
  if ((!work.costs.empty() && work.costs.size() != workers.size()) ||
      (!work.sizes.empty() && work.sizes.size() != micro_batches)) {
    return wrong("costs of ", work.costs.size(), " stages and sizes of ",
                 work.sizes.size(), " micro-batches, where there are ",
                 workers.size(), " and ", micro_batches);
  }
  if (!work.transfers.empty() && work.transfers.size() + 1 != workers.size()) {
    return wrong(work.transfers.size(), " transfers between ", workers.size(),
                 " stages");
  }
  if (!work.tails.empty() && work.tails.size() != workers.size())
    return wrong(work.tails.size(), " tails of ", workers.size(), " stages");
  bool negative =
      work.link < 0 || work.most_held < 0 || work.start < 0 || work.gap < 0;
  for (const StageCosts& costs : work.costs) {
    negative |=
        std::min({costs.forward, costs.input_grad, costs.weight_grad}) < 0;
  }
  for (double size : work.sizes) negative |= size < 0;
  for (double transfer : work.transfers) negative |= transfer < 0;
  for (double tail : work.tails) negative |= tail < 0;
  return negative ? wrong("a cost or size is negative") : absl::OkStatus();
}

void CostMeter::Add(const Instruction& instruction, double size, double time,
                    double tail) {
  const auto stage = static_cast<size_t>(instruction.stage);
  stages_[stage][static_cast<size_t>(instruction.op)].Add(size, time);
  if (instruction.op == StageOp::kBackward) tails_[stage].Add(size, tail);
}

void CostMeter::AddCopy(int from_stage, int to_stage, double time) {
  const auto link = static_cast<size_t>(std::min(from_stage, to_stage));
  if (std::abs(from_stage - to_stage) != 1 || link >= copies_.size()) return;
  copies_[link].Add(1, time);
}

void CostMeter::Describe(Workload& work) const {
  work.costs = Mean();
  work.transfers = Transfers();
  work.tails.clear();
  for (const Sum& sum : tails_) work.tails.push_back(sum.mean());
  work.start = starts_.mean();
  work.gap = gaps_.mean();
}

std::vector<double> CostMeter::Transfers() const {
  std::vector<double> transfers;
  for (const Sum& sum : copies_) transfers.push_back(sum.mean());
  const bool none = std::all_of(transfers.begin(), transfers.end(),
                                [](double time) { return time == 0; });
  return none ? std::vector<double>() : transfers;
}

std::vector<StageCosts> CostMeter::Mean() const {
  std::vector<StageCosts> costs;
  for (const auto& of : stages_) {
    const auto mean = [&](StageOp op) {
      return of[static_cast<size_t>(op)].mean();
    };
    StageCosts stage = {mean(StageOp::kForward), mean(StageOp::kInputGrad),
                        mean(StageOp::kWeightGrad)};
    const double joined = mean(StageOp::kBackward);
    if (stage.input_grad == 0 && stage.weight_grad == 0) {
      stage.input_grad = joined * 2 / 3;
      stage.weight_grad = joined / 3;
    }
    costs.push_back(stage);
  }
  return costs;
}

}  // namespace baton::dist
