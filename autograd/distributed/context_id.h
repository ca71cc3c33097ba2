// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

namespace baton::dist {

// Identifies a context in the whole cluster for all time: by the worker that
// opened it, that worker's incarnation, and a number. Value type.
struct ContextId {
  std::string root;
  uint64_t incarnation = 0;
  uint64_t number = 0;

  // "context 3 of alice".
  std::string ToString() const {
    return "context " + std::to_string(number) + " of " + root;
  }
  // Returns "context 3 of alice is over: WHY", or without WHY if it is empty.
  std::string Over(const std::string& why) const {
    return ToString() + " is over" + (why.empty() ? "" : ": " + why);
  }
  static constexpr auto Fields() {
    return std::tuple{&ContextId::root, &ContextId::incarnation,
                      &ContextId::number};
  }
  friend auto operator<=>(const ContextId&, const ContextId&) = default;
};

// Identifies a message that carries values which require grad. Unique among the
// edges that one worker sends in one context.
enum class EdgeId : uint64_t {};

// Numbers the backwards of a context, from 1.
enum class PassId : uint64_t {};

}  // namespace baton::dist
