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

// Objects that a handler holds beside its own. Lets go of them at its end, on
// any thread. Thread-compatible.
class ObjectHold {
 public:
  ObjectHold(std::vector<std::shared_ptr<ObjectLock>> locks,
             std::shared_ptr<const ObjectUse> use);
  ObjectHold(ObjectHold&& other) = default;
  ObjectHold& operator=(ObjectHold&&) = delete;
  ~ObjectHold();

  // Of this and of the calls that wait for it: as internal::HoldsOfThread while
  // the objects are used, they let calls come back to the objects.
  const std::vector<HoldId>& holds() const { return holds_; }

 private:
  std::vector<std::shared_ptr<ObjectLock>> locks_;
  std::shared_ptr<const ObjectUse> use_;
  std::vector<HoldId> holds_;
};

// Calls `done` once the handler of `call` holds all of these: at once, or on
// one of the agent's threads for handlers. It waits for none while it holds
// another, so that those that want several cannot wait for each other. What
// `call` holds, or a call that waits for it, is no obstacle. DeadlineExceeded
// names the object and its holder a little before the time of `call` is over;
// Cancelled once it is given up.
using OnHold = std::function<void(absl::StatusOr<ObjectHold>)>;
void HoldObjects(const CallContext& call,
                 std::vector<std::shared_ptr<ObjectLock>> locks, Access access,
                 OnHold done);

// Calls `fn()` while these are held. Gives the future of what `fn` gives: a
// value, a Status, a StatusOr or a Future, which the objects do not wait for.
// Errors as HoldObjects.
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
