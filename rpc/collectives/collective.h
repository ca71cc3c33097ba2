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

// The types that describe a collective, shared by all parts of a process group.
namespace baton::rpc {

// How the elements of several members are combined into one. kMean requires a
// floating dtype. A sum of bools is their "or", a product their "and".
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
  kReplay,  // a graph's replay with `count` recorded collectives
  kSend,    // these two occur only in records
  kReceive,
};

// One collective. All members must call it with equal values of these fields;
// only the tensors differ. Value type.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements that a member sends or receives, the lesser
  // The root's rank, or that of the other end of a send or receive; -1 if all
  // members do the same.
  int32_t root = -1;
  MemoryFormat format = MemoryFormat::kContiguous;
  std::vector<int64_t> sizes{};  // of each of several tensors; sum: count
  int32_t tag = 0;               // of a send or receive

  std::string ToString() const;  // "all_reduce sum f32[1024]"
  bool is_passing() const {      // a send or receive
    return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  }
  friend bool operator==(const Collective&, const Collective&) = default;
  static constexpr auto Fields() {
    return std::tuple{&Collective::kind,  &Collective::op,
                      &Collective::dtype, &Collective::count,
                      &Collective::root,  &Collective::format,
                      &Collective::sizes, &Collective::tag};
  }
};

// One collective with this member's tensors: `in` is read, `out` is written,
// and they may be the same tensor. Both are dense and, if both are defined,
// have one dtype. A tensor is undefined if this member sends, or receives,
// nothing.
struct CollectiveWork {
  Collective what;
  uint64_t sequence = 0;  // from 1, in each group
  Tensor in = {}, out = {};
  std::vector<Tensor> several{};  // instead of in and out: each is both
  std::chrono::steady_clock::time_point deadline{};
};

}  // namespace baton::rpc
