// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "examples/support/digits.h"
#include "rpc/collectives/process_group.h"

// The parts of data parallelism, written by hand with nothing but Send and
// Receive, to show what travels. Use dist::DataParallel instead in a program.
namespace baton::examples {

// Divides a batch into `parts` parts whose sizes differ by at most one; the
// first ones are larger. InvalidArgument if there are fewer samples than parts.
absl::StatusOr<std::vector<Digits>> SplitBatch(const Digits& batch, int parts);

// One member's part of a batch. Plain data.
struct BatchPart {
  Digits digits;
  int64_t of = 0;  // samples in the whole batch
};

// Rank 0 sends each member the part of its rank. If rank 0 passes an empty
// list, no more batches come, and all members get nullopt. The list is ignored
// at other ranks.
absl::StatusOr<std::optional<BatchPart>> Scatter(
    rpc::ProcessGroup& group, const std::vector<Digits>& parts);

enum class AllReduceWay : uint8_t {
  kStar,  // all send to rank 0, which adds and sends back; the textbooks' first
          // way
  kTree,  // pairs, then pairs of pairs, and back
  kRing,  // each reduces a part; each sends 2 (n - 1) / n of the bytes
  kLibrary,  // ProcessGroup::AllReduce
};
std::string_view Name(AllReduceWay way);
absl::StatusOr<AllReduceWay> ParseAllReduceWay(const std::string& name);

// Sums the elements of all members in place; all get the same bits. `flat` must
// be dense, of rank 1 and equally long at all members.
absl::Status AllReduce(rpc::ProcessGroup& group, const Tensor& flat,
                       AllReduceWay way);

}  // namespace baton::examples
