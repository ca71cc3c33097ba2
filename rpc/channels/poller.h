// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "core/executor.h"

namespace baton::rpc {

// Polls for what nobody announces, such as the end of a GPU's work: often while
// queries succeed, and at least every 0.2 ms while there is a query.
// Thread-safe.
class Poller {
 public:
  // `name` is the name of the thread, of at most 15 characters.
  explicit Poller(const char* name);
  ~Poller();  // drops the remaining queries
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Runs on the poller's thread until it returns true. It must not wait.
  using Query = absl::AnyInvocable<bool()>;
  void Add(Query query);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread may drop the poller
  ThreadPool thread_;
};

}  // namespace baton::rpc
