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

// Which pass of a context has which of a worker's nodes. A node runs for one
// pass at a time, so passes beside each other share none; a parameter is a node
// too, the end of the graph at it. Thread-safe.
class NodeClaims {
 public:
  // Takes what `roots` reach, up to received values, for `pass`; returns what
  // it had not taken before. FailedPrecondition, naming what it is, where
  // another pass has some of it; nothing is taken then.
  absl::StatusOr<std::vector<std::shared_ptr<autograd::Node>>> Take(
      PassId pass, const std::vector<std::shared_ptr<autograd::Node>>& roots);
  // Gives back what a pass has taken.
  void GiveBack(const std::vector<const autograd::Node*>& nodes);

 private:
  Mutex mutex_;
  std::unordered_map<const autograd::Node*, PassId> taken_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
