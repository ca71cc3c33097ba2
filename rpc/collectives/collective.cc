// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/collective.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::rpc {
namespace {

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kGather:
      return "gather";
    case CollectiveKind::kScatter:
      return "scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kBarrier:
      return "barrier";
    case CollectiveKind::kReplay:
      return "replay";
    case CollectiveKind::kSend:
      return "send";
    case CollectiveKind::kReceive:
      return "receive";
  }
  return "collective";  // unknown: from a newer worker
}

const char* NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "?";
}

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

void AppendSizes(const std::vector<int64_t>& sizes, std::string& text) {
  constexpr size_t kShown = 4;
  const auto shown = sizes.begin() + std::min(sizes.size(), kShown);
  absl::StrAppend(&text, absl::StrJoin(sizes.begin(), shown, " + "), "]");
  if (shown != sizes.end()) {
    absl::StrAppend(&text, " and ", sizes.end() - shown, " more, ",
                    std::accumulate(sizes.begin(), sizes.end(), int64_t{0}),
                    " together");
  }
}

}  // namespace

std::string Collective::ToString() const {
  std::string text = NameOf(kind);
  if (kind == CollectiveKind::kBarrier) return text;
  if (kind == CollectiveKind::kReplay)
    return absl::StrCat(text, " of ", count, " collectives");
  if (Reduces(kind)) absl::StrAppend(&text, " ", NameOf(op));
  absl::StrAppend(&text, " ", Name(dtype), "[");
  if (sizes.empty()) {
    absl::StrAppend(&text, count, "]");
  } else {
    AppendSizes(sizes, text);
  }
  if (format == MemoryFormat::kChannelsLast)
    absl::StrAppend(&text, " channels-last");
  if (is_passing()) {
    const bool sends = kind == CollectiveKind::kSend;
    absl::StrAppend(&text, sends ? " to" : " from", " rank ", root, ", tag ",
                    tag);
  } else if (root >= 0) {
    absl::StrAppend(&text, ", root ", root);
  }
  return text;
}

}  // namespace baton::rpc
