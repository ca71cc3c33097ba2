// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <tuple>

namespace baton::dist {

// Assigned by the directory, and never reused.
enum class TrainerId : uint64_t {};

// The pushes of one trainer that the values of a shard have.
struct PushesOf {
  int64_t last = 0;   // all up to this number
  bool left = false;  // the shard takes no more of them
  static constexpr auto Fields() {
    return std::tuple{&PushesOf::last, &PushesOf::left};
  }
};

// The pushes that the values of a shard have; none of a trainer that is not
// named. A push has the same number at all shards, while the updates of a shard
// are counted in the order in which they come there. So cuts say which values
// of several shards belong together, and in bounded-stale and asynchronous mode
// equal versions do not.
using Cut = std::map<TrainerId, PushesOf>;

bool Has(const Cut& cut, TrainerId trainer, int64_t sequence);
// Adds the pushes of `more` to the cut.
void Include(const Cut& more, Cut& cut);
// Whether a shard at `cut` has all pushes of `wanted` but for those that it
// never takes because their trainer has left it.
bool Reaches(const Cut& cut, const Cut& wanted);

}  // namespace baton::dist
