// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace baton::testing {

// Runs fn(rank) on a thread for each rank.
inline void OnEach(size_t ranks, const std::function<void(size_t rank)>& fn) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&fn, rank] { fn(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace baton::testing
