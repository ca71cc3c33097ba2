// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "rpc/call_context.h"
#include "rpc/call_scope.h"
#include "rpc/worker.h"

namespace baton::rpc {

// Details of a failed call, beside the error text, which reads "bob,
// Stage::Forward: cause". With nested calls, the innermost failed call.
struct CallError {
  std::string worker;
  std::string method;
  bool retryable = false;  // the method did not run
};

// Returns nothing if `status` is not from a failed call.
std::optional<CallError> CallErrorOf(const absl::Status& status);

// Returns `status` with "worker, method: " in front and with a CallError,
// unless it has one already.
absl::Status CallFailed(const absl::Status& status, const CallError& error);

// A line of a source file, captured where a default argument is evaluated:
//   void Make(Place where = Place::Here());
// (As std::source_location, which clang 14 does not have.) Value type.
struct Place {
  const char* file = "";  // the path as given to the compiler; never freed
  int line = 0;           // 0: unknown

  static constexpr Place Here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    return {file, line};
  }
  std::string ToString() const;  // "trainer.cc:45"; empty if unknown
};

// Names the worker to call, by name, rank or WorkerInfo. If the WorkerInfo has
// an incarnation, the call goes to that incarnation or fails.
class Target {
 public:
  // NOLINTBEGIN(google-explicit-constructor): "alice" and Rank{1} are targets
  Target(std::string name, Place where = Place::Here())
      : key_(std::move(name)), where_(where) {}
  Target(const char* name, Place where = Place::Here())
      : key_(std::string(name)), where_(where) {}
  Target(Rank rank, Place where = Place::Here()) : key_(rank), where_(where) {}
  Target(WorkerInfo worker, Place where = Place::Here())
      : key_(std::move(worker)), where_(where) {}
  // NOLINTEND(google-explicit-constructor)

  const std::variant<std::string, Rank, WorkerInfo>& key() const {
    return key_;
  }
  std::string ToString() const;  // "alice", "rank 1"
  // Where in the source the target was written; it is shown as the origin of
  // objects that the call makes. Line 0 if unknown.
  const Place& where() const { return where_; }

 private:
  std::variant<std::string, Rank, WorkerInfo> key_;
  Place where_;
};

// Options that may precede the arguments of any call.
struct CallOptions {
  // The time from now to the answer, including the wait for arguments. If
  // unset, the agent's default; kNoLimit means no timeout.
  std::optional<std::chrono::milliseconds> timeout{};
  // Cancels the call: its future fails at once and its handler is notified.
  CancelToken cancel{};
};

// Types that carry a call's scope: dist::Context, CallContext.
template <typename T>
concept HasCallScope = requires(const std::remove_cvref_t<T>& holder) {
  { holder.call_scope() } -> std::convertible_to<std::shared_ptr<CallScope>>;
};

namespace internal {

// Collects everything that may precede the arguments.
struct Leading {
  CallOptions options;
  std::shared_ptr<CallScope> scope;
  std::optional<CallContext> parent;

  void Take(const CallOptions& given) { options = given; }
  void Take(const CallContext& given) {
    parent = given;
    if (scope == nullptr) scope = given.call_scope();
  }
  void Take(CallScope& given) { scope = given.shared_from_this(); }
  void Take(std::shared_ptr<CallScope> given) { scope = std::move(given); }
  template <HasCallScope T>
  requires(!std::same_as<T, CallContext>) void Take(const T& given) {
    scope = given.call_scope();
  }
};

template <typename T>
inline constexpr bool kIsLeading =
    std::same_as<std::remove_cvref_t<T>, CallOptions> ||
    std::convertible_to<T, std::shared_ptr<CallScope>> ||
    std::derived_from<std::remove_cvref_t<T>, CallScope> || HasCallScope<T>;

}  // namespace internal

}  // namespace baton::rpc
