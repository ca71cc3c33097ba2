// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_context.h"

#include <algorithm>

#include "core/future.h"
#include "rpc/agent.h"

namespace baton::rpc {

Tensor CallContext::EmptyForCaller(const Shape& shape,
                                   const TensorOptions& options) const {
  auto shared = agent().EmptyFor(caller(), shape, options);
  // If the caller is gone, the handler still gets an ordinary tensor.
  return shared.ok() ? *std::move(shared) : Tensor::Empty(shape, options);
}

const Compute& CallContext::compute() const { return agent().self().compute; }

std::chrono::milliseconds CallContext::remaining() const {
  using std::chrono::steady_clock;
  if (deadline() == steady_clock::time_point::max()) return kNoLimit;
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline() - steady_clock::now()));
}

}  // namespace baton::rpc
