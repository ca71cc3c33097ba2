// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "core/future.h"
#include "core/tensor.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// A bucket of this member's gradients, all of which are there. Value type.
struct GradientBucket {
  size_t number = 0;  // in the order in which buckets are reduced, from 0
  Tensor all;         // [elements], dense: the gradients side by side
  // By part: the index among the module's parameters that require gradients,
  // and the gradient, a view of `all`.
  std::vector<size_t> parameters{};
  std::vector<Tensor> gradients{};
};

// The call that reduces a bucket and what follows it. Value type.
struct BucketReduction {
  Future<void> call = {};  // of the group; invalid: there is nothing to await
  int64_t bytes = 0;       // that it sends, for DataParallelFigures
  // Called when the call has ended or, on a GPU, is enqueued; it may post
  // another call. Null if nothing is left to do.
  std::function<BucketReduction()> then = nullptr;
};

// Reduces the gradients of a bucket. What is in `all` after the last `then`
// becomes the gradients; it must be the same at all members, so it should be
// made of the results of collectives. A hook is called for each bucket, in
// order, while backward goes on, and its `then` after backward, those of all
// buckets in turn. On a GPU both run on the stream of the collectives
// and must not wait for it; in a recorded step they run when it is recorded. An
// error of a call, and what they throw, breaks the group.
using GradientHook = std::function<BucketReduction(
    rpc::ProcessGroup& group, const GradientBucket& bucket)>;

// Returns a hook that takes the mean over the members. If a dtype is given,
// gradients are sent and summed in it.
GradientHook MeanHook(std::optional<DType> travel_as = {});

}  // namespace baton::dist
