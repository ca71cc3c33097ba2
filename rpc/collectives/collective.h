// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"

// What the members of a group do together: the words that its parts share.
namespace baton::rpc {

// How elements of several members become one. kMean is for floating dtypes;
// sums of bool are "or", products "and".
enum class ReduceOp : uint8_t { kSum, kMean, kMin, kMax, kProduct };

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kReplay,  // of a graph that so many of them were recorded in
};

// One collective, as all members must call it: they may call it with other
// tensors, but not with other numbers. Value type.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements that a member gives, or gets, the fewer ones
  int32_t root = -1;  // rank in the group; -1: all members do the same
  MemoryFormat format = MemoryFormat::kContiguous;
  std::vector<int64_t> sizes{};  // of several tensors, which count together

  std::string ToString() const;  // "all_reduce sum f32[1024]"
  friend bool operator==(const Collective&, const Collective&) = default;
  static constexpr auto Fields() {
    return std::tuple{&Collective::kind,  &Collective::op,
                      &Collective::dtype, &Collective::count,
                      &Collective::root,  &Collective::format,
                      &Collective::sizes};
  }
};

// One collective with this member's tensors, dense and, where both are defined,
// of one dtype: `in` is read, `out` written; they may be the same. Undefined
// where the member gives, or gets, nothing.
struct CollectiveWork {
  Collective what;
  uint64_t sequence = 0;  // from 1, in each group
  Tensor in = {}, out = {};
  std::vector<Tensor> several{};  // in their place: each is read and written
  std::chrono::steady_clock::time_point deadline{};
};

}  // namespace baton::rpc
