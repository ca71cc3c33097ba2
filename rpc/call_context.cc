// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_context.h"

#include <algorithm>

#include "core/future.h"

namespace baton::rpc {

std::chrono::milliseconds CallContext::remaining() const {
  using std::chrono::steady_clock;
  if (deadline() == steady_clock::time_point::max()) return kNoLimit;
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline() - steady_clock::now()));
}

}  // namespace baton::rpc
