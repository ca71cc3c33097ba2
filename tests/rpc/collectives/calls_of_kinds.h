// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "rpc/collectives/process_group.h"

namespace baton::testing {

// The calls of one member of a group by the names of their kinds, which
// ProcessGroup's errors use, too. Confined to one thread.
class CallsOfKinds {
 public:
  // `one` gets `count` elements, `all` and `more` a block of so many for each
  // member. Calls that have a root have this one, and tensors are passed round
  // the ring.
  CallsOfKinds(rpc::ProcessGroup& group, int64_t count,
               Device device = Device::Cpu(), int root = 0)
      : group_(group),
        root_(root),
        one_(Tensor::Ones({count}, {.device = device})),
        all_(Tensor::Ones({count * group.size()}, {.device = device})),
        more_(Tensor::Ones({count * group.size()}, {.device = device})) {}

  Future<void> Call(const std::string& kind,
                    const rpc::CollectiveOptions& options = {}) const {
    using rpc::ReduceOp;
    const std::vector<Tensor> both = {one_, all_};
    const std::map<std::string, std::function<Future<void>()>> calls = {
        {"all_reduce",
         [&] { return group_.AllReduce(one_, ReduceOp::kMean, options); }},
        {"broadcast", [&] { return group_.Broadcast(one_, root_, options); }},
        {"reduce",
         [&] { return group_.Reduce(one_, root_, ReduceOp::kSum, options); }},
        {"all_gather", [&] { return group_.AllGather(all_, one_, options); }},
        {"reduce_scatter",
         [&] {
           return group_.ReduceScatter(one_, all_, ReduceOp::kSum, options);
         }},
        {"gather", [&] { return group_.Gather(all_, one_, root_, options); }},
        {"scatter", [&] { return group_.Scatter(one_, all_, root_, options); }},
        {"all_to_all", [&] { return group_.AllToAll(all_, more_, options); }},
        {"barrier", [&] { return group_.Barrier(options); }},
        {"all_reduce_many",
         [&] { return group_.AllReduceMany(both, ReduceOp::kSum, options); }},
        {"broadcast_many",
         [&] { return group_.BroadcastMany(both, root_, options); }},
        {"send", [&] { return group_.Send(all_, Neighbor(1), 0, options); }},
        {"receive",
         [&] { return group_.Receive(more_, Neighbor(-1), 0, options); }}};
    return calls.at(kind)();
  }

 private:
  int Neighbor(int distance) const {
    return (group_.rank() + distance + group_.size()) % group_.size();
  }

  rpc::ProcessGroup& group_;
  const int root_;
  const Tensor one_, all_, more_;
};

}  // namespace baton::testing
