// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "core/future.h"
#include "models/distributed/server/directory.h"

namespace baton::testing {

inline constexpr int64_t kElements = 20'000;  // of the only key

// What the program shard_server that makes parameter servers gives its trainer.
inline Promise<RRef<dist::ServerDirectory>>& TakenDirectory() {
  static Promise<RRef<dist::ServerDirectory>> taken;
  return taken;
}
inline void TakeDirectory(const RRef<dist::ServerDirectory>& directory) {
  TakenDirectory().Set(directory);
}

}  // namespace baton::testing
