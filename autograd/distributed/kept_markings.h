// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "autograd/distributed/peers.h"
#include "autograd/signature.h"
#include "core/mutex.h"

namespace baton::dist {

// A cache of markings by the signatures of graphs; keeps the newest 256.
// Thread-safe.
class KeptMarkings {
 public:
  using Ptr = std::shared_ptr<const Marking>;

  // Returns null if there is none.
  Ptr Find(const autograd::Signature& graph) const {
    MutexLock lock(mutex_);
    const auto found = markings_.find(graph);
    return found == markings_.end() ? nullptr : found->second;
  }
  void Keep(const autograd::Signature& graph, Marking marking) {
    auto kept = std::make_shared<const Marking>(std::move(marking));
    MutexLock lock(mutex_);
    if (!markings_.insert_or_assign(graph, std::move(kept)).second) return;
    order_.push_back(graph);
    if (order_.size() <= kMost) return;
    markings_.erase(order_.front());
    order_.pop_front();
  }

 private:
  static constexpr size_t kMost = 256;
  mutable Mutex mutex_;
  std::map<autograd::Signature, Ptr> markings_ ABSL_GUARDED_BY(mutex_);
  std::deque<autograd::Signature> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
