// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "core/executor.h"

namespace baton::rpc {

// How long the latest answers to queries of one kind took. Thread-compatible.
class AnswerTimes {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // Zero until there are as many as are remembered.
  Duration Least() const;
  void Add(Duration took);

 private:
  std::array<Duration, 8> latest_{};
  size_t added_ = 0;
};

// Polls for what nobody announces, such as the end of a GPU's work: often while
// queries succeed, and at least every 0.2 ms while there is a query. A query
// whose kind has taken long each time lately is left alone for most of that
// time, but for no longer than 50 ms. Thread-safe.
class Poller {
 public:
  // `name` is the name of the thread, of at most 15 characters.
  explicit Poller(const char* name);
  ~Poller();  // drops the remaining queries
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Runs on the poller's thread until it returns true. It must not wait.
  using Query = absl::AnyInvocable<bool()>;
  // Only the poller's thread uses `times`, which are of the query's kind.
  void Add(Query query, std::shared_ptr<AnswerTimes> times = nullptr);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread may drop the poller
  ThreadPool thread_;
};

}  // namespace baton::rpc
