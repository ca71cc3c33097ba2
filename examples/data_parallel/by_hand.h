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

// What data parallelism is made of, by hand and out of sends alone, so that one
// sees what travels. The library's own is dist::DataParallel.
namespace baton::examples {

// So many parts, whose sizes differ by one at most; the first ones are larger.
// InvalidArgument where there are fewer samples than parts.
absl::StatusOr<std::vector<Digits>> SplitBatch(const Digits& batch, int parts);

// One member's part of a batch. Plain data.
struct BatchPart {
  Digits digits;
  int64_t of = 0;  // samples of the whole batch
};

// Rank 0 gives each member the part of its rank, and no parts (an empty list)
// to say that no more will come, for which all get nullopt. The list of the
// others does not count.
absl::StatusOr<std::optional<BatchPart>> Scatter(
    rpc::ProcessGroup& group, const std::vector<Digits>& parts);

enum class AllReduceWay : uint8_t {
  kStar,     // all to rank 0, which adds them up, and back: as textbooks begin
  kTree,     // in pairs, then pairs of pairs, and back
  kRing,     // each reduces a part: 2 (n - 1) / n of the bytes of each member
  kLibrary,  // ProcessGroup::AllReduce
};
std::string_view Name(AllReduceWay way);
absl::StatusOr<AllReduceWay> ParseAllReduceWay(const std::string& name);

// Sums of all members' elements, in place; the same bits at all. `flat` is
// dense, of one axis and of the same length at all members.
absl::Status AllReduce(rpc::ProcessGroup& group, const Tensor& flat,
                       AllReduceWay way);

}  // namespace baton::examples
