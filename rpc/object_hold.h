// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "rpc/call_context.h"
#include "rpc/object_lock.h"

namespace baton::rpc {

// Objects that a handler holds in addition to its own. The destructor releases
// them and may run on any thread. Thread-compatible.
class ObjectHold {
 public:
  ObjectHold(std::vector<std::shared_ptr<ObjectLock>> locks,
             std::shared_ptr<const ObjectUse> use);
  ObjectHold(ObjectHold&& other) = default;
  ObjectHold& operator=(ObjectHold&&) = delete;
  ~ObjectHold();

  // The ids of this hold and of the holds of the calls that wait for it. While
  // they are set as internal::HoldsOfThread, nested calls may come back to the
  // objects.
  const std::vector<HoldId>& holds() const { return holds_; }

 private:
  std::vector<std::shared_ptr<ObjectLock>> locks_;
  std::shared_ptr<const ObjectUse> use_;
  std::vector<HoldId> holds_;
};

// Calls `done` once the handler of `call` holds all objects of `locks`: at
// once, or on one of the agent's handler threads. It never waits for one object
// while it holds another of them, so two calls that need several objects cannot
// wait for each other. Holds of `call`, and of the calls that wait for it, do
// not block it. Shortly before the deadline of `call` it fails with
// DeadlineExceeded, which names the object and its holder; if `call` is
// cancelled, with Cancelled.
using OnHold = std::function<void(absl::StatusOr<ObjectHold>)>;
void HoldObjects(const CallContext& call,
                 std::vector<std::shared_ptr<ObjectLock>> locks, Access access,
                 OnHold done);

// Calls `fn()` while the objects are held. Returns a future of what `fn`
// returns: a value, a Status, a StatusOr or a Future. The objects are released
// when `fn` returns, even if its Future is not ready. Errors as for
// HoldObjects.
template <typename Fn>
auto WithObjects(const CallContext& call,
                 std::vector<std::shared_ptr<ObjectLock>> locks, Access access,
                 Fn fn) {
  using U = typename baton::internal::Unwrapped<
      std::remove_cvref_t<std::invoke_result_t<Fn&>>>::Type;
  Promise<U> promise;
  HoldObjects(call, std::move(locks), access,
              [promise, fn = std::move(fn)](
                  const absl::StatusOr<ObjectHold>& hold) mutable {
                if (!hold.ok()) {
                  promise.Set(hold.status());
                  return;
                }
                const internal::HoldsOfThread within(hold->holds());
                baton::internal::SetFrom(promise, [&] { return fn(); });
              });
  return promise.future();
}

}  // namespace baton::rpc
