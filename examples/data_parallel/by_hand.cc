// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/data_parallel/by_hand.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"

namespace baton::examples {
namespace {

constexpr std::array kWays = {AllReduceWay::kStar, AllReduceWay::kTree,
                              AllReduceWay::kRing, AllReduceWay::kLibrary};

Tensor EmptyLike(const Tensor& x) {
  return Tensor::Empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
}

// Each call has the group's deadline.
absl::Status AwaitAll(const std::vector<Future<void>>& calls) {
  return WaitAll(calls).Await(kNoLimit);
}

Tensor Part(const Tensor& flat, int part, int parts) {
  return flat.Slice(0, flat.numel() * part / parts,
                    flat.numel() * (part + 1) / parts);
}

// Sends `out` to the next member and receives `in` from the previous one;
// called by all members at once.
absl::Status PassOn(rpc::ProcessGroup& group, const Tensor& out,
                    const Tensor& in) {
  const int n = group.size(), rank = group.rank();
  std::vector<Future<void>> calls;
  if (out.numel() > 0) calls.push_back(group.Send(out, (rank + 1) % n));
  if (in.numel() > 0) calls.push_back(group.Receive(in, (rank + n - 1) % n));
  return AwaitAll(calls);
}

absl::Status SendToOthers(rpc::ProcessGroup& group, const Tensor& tensor) {
  std::vector<Future<void>> calls;
  for (int other = 1; other < group.size(); ++other)
    calls.push_back(group.Send(tensor, other));
  return AwaitAll(calls);
}

absl::Status StarAllReduce(rpc::ProcessGroup& group, const Tensor& flat) {
  if (group.rank() != 0) {
    RETURN_IF_ERROR(group.Send(flat, 0).Await(kNoLimit));
    return group.Receive(flat, 0).Await(kNoLimit);
  }
  std::vector<Tensor> others;
  std::vector<Future<void>> calls;
  for (int other = 1; other < group.size(); ++other) {
    others.push_back(EmptyLike(flat));
    calls.push_back(group.Receive(others.back(), other));
  }
  RETURN_IF_ERROR(AwaitAll(calls));
  for (const Tensor& other : others) ops::AddInto(flat, other);
  return SendToOthers(group, flat);
}

// A rank's children are that rank plus 1, 2, 4, ..., up to the lowest bit that
// is set in the rank.
absl::Status TreeAllReduce(rpc::ProcessGroup& group, const Tensor& flat) {
  const int n = group.size(), rank = group.rank();
  const Tensor other = EmptyLike(flat);
  int step = 1;
  for (; step < n && (rank & step) == 0; step *= 2) {
    if (rank + step >= n) continue;
    RETURN_IF_ERROR(group.Receive(other, rank + step).Await(kNoLimit));
    ops::AddInto(flat, other);
  }
  if (rank != 0) {
    RETURN_IF_ERROR(group.Send(flat, rank - step).Await(kNoLimit));
    RETURN_IF_ERROR(group.Receive(flat, rank - step).Await(kNoLimit));
  }
  std::vector<Future<void>> calls;
  for (step /= 2; step > 0; step /= 2)
    if (rank + step < n) calls.push_back(group.Send(flat, rank + step));
  return AwaitAll(calls);
}

absl::Status RingAllReduce(rpc::ProcessGroup& group, const Tensor& flat) {
  const int n = group.size(), rank = group.rank();
  const auto part = [&](int i) { return Part(flat, (i + 2 * n) % n, n); };
  for (int step = 0; step < n - 1; ++step) {
    const Tensor mine = part(rank - step - 1);
    const Tensor other = EmptyLike(mine);
    RETURN_IF_ERROR(PassOn(group, part(rank - step), other));
    if (mine.numel() > 0) ops::AddInto(mine, other);
  }
  for (int step = 0; step < n - 1; ++step)
    RETURN_IF_ERROR(PassOn(group, part(rank + 1 - step), part(rank - step)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Digits>> SplitBatch(const Digits& batch, int parts) {
  if (parts < 1 || batch.size() < parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size(), " has no ", parts, " parts"));
  }
  std::vector<Digits> split;
  int64_t begin = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t end =
        begin + batch.size() / parts + (part < batch.size() % parts ? 1 : 0);
    split.push_back({.images = batch.images.Slice(0, begin, end),
                     .labels = batch.labels.Slice(0, begin, end)});
    begin = end;
  }
  return split;
}

absl::StatusOr<std::optional<BatchPart>> Scatter(
    rpc::ProcessGroup& group, const std::vector<Digits>& parts) {
  const Tensor sizes = Tensor::Zeros({2}, {.dtype = DType::kI64});
  int64_t* const size = sizes.data<int64_t>();  // of part and whole
  if (group.rank() != 0) {
    RETURN_IF_ERROR(group.Receive(sizes, 0).Await(kNoLimit));
    if (size[1] == 0) return std::nullopt;
    Digits part{.images = Tensor::Empty({size[0], 1, 28, 28}),
                .labels = Tensor::Empty({size[0]}, {.dtype = DType::kI64})};
    RETURN_IF_ERROR(AwaitAll(
        {group.Receive(part.images, 0), group.Receive(part.labels, 0)}));
    return BatchPart{.digits = std::move(part), .of = size[1]};
  }
  if (parts.empty()) {
    RETURN_IF_ERROR(SendToOthers(group, sizes));
    return std::nullopt;
  }
  for (const Digits& part : parts) size[1] += part.size();
  std::vector<Future<void>> calls;
  for (int other = 1; other < group.size(); ++other) {
    const Digits& part = parts.at(static_cast<size_t>(other));
    const Tensor its = sizes.Clone();
    its.data<int64_t>()[0] = part.size();
    for (const Tensor& tensor : {its, part.images, part.labels})
      calls.push_back(group.Send(tensor, other));
  }
  RETURN_IF_ERROR(AwaitAll(calls));
  return BatchPart{.digits = parts.front(), .of = size[1]};
}

std::string_view Name(AllReduceWay way) {
  switch (way) {
    case AllReduceWay::kStar:
      return "star";
    case AllReduceWay::kTree:
      return "tree";
    case AllReduceWay::kRing:
      return "ring";
    case AllReduceWay::kLibrary:
      return "library";
  }
  return "unknown";
}

absl::StatusOr<AllReduceWay> ParseAllReduceWay(const std::string& name) {
  for (const AllReduceWay way : kWays)
    if (Name(way) == name) return way;
  return absl::InvalidArgumentError(absl::StrCat(
      "an all-reduce is star, tree, ring or library, not '", name, "'"));
}

absl::Status AllReduce(rpc::ProcessGroup& group, const Tensor& flat,
                       AllReduceWay way) {
  switch (way) {
    case AllReduceWay::kStar:
      return StarAllReduce(group, flat);
    case AllReduceWay::kTree:
      return TreeAllReduce(group, flat);
    case AllReduceWay::kRing:
      return RingAllReduce(group, flat);
    case AllReduceWay::kLibrary:
      return group.AllReduce(flat).Await(kNoLimit);
  }
  return absl::InvalidArgumentError("no such all-reduce");
}

}  // namespace baton::examples
