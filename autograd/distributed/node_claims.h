// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/distributed/context_id.h"
#include "autograd/node.h"
#include "core/mutex.h"

namespace baton::dist {

// Records which pass of a context has claimed which of a worker's nodes. A node
// runs for one pass at a time, so concurrent passes share none. A parameter is
// a node, too: the end of the graph. Thread-safe.
class NodeClaims {
 public:
  // Claims for `pass` the nodes that `roots` reach, up to received values, and
  // returns those that it did not have before. If another pass has one of them,
  // claims none and returns FailedPrecondition, which names it.
  absl::StatusOr<std::vector<std::shared_ptr<autograd::Node>>> Take(
      PassId pass, const std::vector<std::shared_ptr<autograd::Node>>& roots);
  // Releases the claims of a pass.
  void GiveBack(const std::vector<const autograd::Node*>& nodes);

 private:
  Mutex mutex_;
  std::unordered_map<const autograd::Node*, PassId> taken_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
