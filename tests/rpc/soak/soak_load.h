// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::testing {

// The part of one worker in a soak: calls at random other workers, empty, with
// 64 bytes, and with a megabyte, which shared memory carries; and the lives of
// RRefs, each made at one worker, used by another, fetched and dropped. Many
// are under way at a time, and every result is checked. Confined to one thread.
class SoakLoad {
 public:
  // The agent outlives it.
  explicit SoakLoad(rpc::Agent& agent);

  // So many of each, mixed as the seed says; the first error ends it.
  absl::Status Run(int calls, int rrefs, uint64_t seed);

  static void FillRegistry(rpc::Registry& registry);

 private:
  using Random = std::mt19937_64;

  const std::string& Other(Random& random) const;
  Future<void> Call(Random& random);
  Future<void> Life(Random& random);
  Future<void> Echoed(const std::string& worker, int64_t elements, float value);

  rpc::Agent& agent_;
  std::vector<std::string> others_;
};

}  // namespace baton::testing
