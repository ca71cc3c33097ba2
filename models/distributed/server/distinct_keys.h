// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/tensor.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// Each key once, in the order of their first occurrence, and the place of every
// given key among them; i64.
struct DistinctKeys {
  Tensor keys, places;
};

// `given` is dense and in host memory.
DistinctKeys DistinctOf(const Tensor& given);

// Returns each key of `given` once, with the sum of its gradients. Keys are in
// host memory.
RowGradients SumOfKeys(const RowGradients& given);

}  // namespace baton::dist
