// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/row_check.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::examples {

absl::StatusOr<std::unique_ptr<RowCheck>> RowCheck::Make(
    rpc::Agent& agent, const RRef<dist::ServerDirectory>& directory,
    int64_t rows) {
  ASSIGN_OR_RETURN(auto reader,
                   dist::ServerClient::Join(agent, directory, std::nullopt));
  const auto* sgd =
      std::get_if<ops::SgdRule>(&reader->options().tables.front().rule);
  if (sgd == nullptr || !sgd->StepsRows() || sgd->maximize)
    return absl::InvalidArgumentError(
        "rows are compared only where plain SGD steps them");
  std::unique_ptr<RowCheck> check(
      new RowCheck(std::move(reader), sgd->lr * kRowGradient, rows));
  ASSIGN_OR_RETURN(check->before_, check->Read());
  return check;
}

RowCheck::RowCheck(std::unique_ptr<dist::ServerClient> reader, double step,
                   int64_t rows)
    : reader_(std::move(reader)),
      step_(step),
      updates_(static_cast<size_t>(rows)) {}

absl::StatusOr<Tensor> RowCheck::Read() const {
  const auto count = static_cast<int64_t>(updates_.size());
  const Tensor keys = Tensor::Empty({count}, {.dtype = DType::kI64});
  std::iota(keys.data<int64_t>(), keys.data<int64_t>() + count, 0);
  ASSIGN_OR_RETURN(const Tensor rows,
                   reader_->PullRows(0, keys).Await(kNoLimit));
  return rows.To(Device::Cpu());
}

void RowCheck::Add(const RowOrder& order) {
  if (order.load != RowLoad::kUpdate && order.load != RowLoad::kTrain) return;
  const std::vector<Tensor> batches = KeysOf(order);
  for (int64_t i = 0; i < BatchesOf(order); ++i) {
    const Tensor& keys = batches[static_cast<size_t>(i) % batches.size()];
    for (const int64_t key : keys.ToVector<int64_t>())
      ++updates_[static_cast<size_t>(key)];
  }
}

absl::StatusOr<int64_t> RowCheck::Compare(bool others) const {
  ASSIGN_OR_RETURN(const Tensor now, Read());
  const float* is = now.data<float>();
  const float* was = before_.data<float>();
  const int64_t width = now.dim(1);
  for (int64_t i = 0; i < now.numel(); ++i) {
    const int64_t wanted = updates_[static_cast<size_t>(i / width)];
    const double found = (static_cast<double>(was[i]) - is[i]) / step_;
    const double more = found - static_cast<double>(wanted);
    if (others ? more < -0.5 : std::abs(more) > 0.5)
      return absl::DataLossError(
          absl::StrCat("row ", i / width, " has ", found,
                       " updates, but clients were told of ", wanted));
  }
  return std::accumulate(updates_.begin(), updates_.end(), int64_t{0});
}

}  // namespace baton::examples
