// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/call_context.h"
#include "rpc/ids.h"

namespace baton::rpc {

// How a call uses an object: together with other shared uses, or exclusively.
enum class Access { kShared, kExclusive };

// One use of an object, or a wait for one, and who makes it. Constant once
// passed to a lock.
struct ObjectUse {
  HoldId id;
  // The holds of the calls that wait for this one, outermost first.
  std::vector<HoldId> within;
  Access access = Access::kExclusive;
  std::string_view method;  // "Stage::Forward"; outlives the use
  std::string caller;       // a worker's name
  std::chrono::steady_clock::time_point started;  // when the call began

  std::string ToString() const;  // "Stage::Forward of worker alice (93 ms ago)"
};

// A line of successive users of one object, such as a pipeline that is remade:
// a user with a later epoch takes the object over, whatever became of the
// earlier one. A line with an empty name stands for no line.
struct ReservationLine {
  std::string name{};
  uint64_t epoch = 0;
};

// Reserves an object for one user of a kind, for example as stage of a
// pipeline. It does not affect calls. Thread-safe.
class Reservation {
 public:
  explicit Reservation(std::string who, ReservationLine line = {})
      : who_(std::move(who)), line_(std::move(line)) {}
  ~Reservation() { ended_.Set(absl::OkStatus()); }

  const std::string& who() const { return who_; }
  const ReservationLine& line() const { return line_; }
  Future<void> Ended() const { return ended_.future(); }
  // True once a user with a later epoch has taken the object over.
  bool superseded() const { return superseded_.load(); }
  void Supersede() { superseded_.store(true); }

 private:
  const std::string who_;
  const ReservationLine line_;
  const Promise<void> ended_;
  std::atomic<bool> superseded_{false};
};

// Lets one exclusive call or several shared calls at a time use an object.
// Waiting calls get it in the order in which they arrived, so shared calls
// cannot starve an exclusive one. A call that a holder waits for may use the
// object beside that holder: it conflicts only with holders that are not its
// ancestors. No thread blocks: the thread that releases the object calls
// `granted` of the waiting calls that may go on. Thread-safe.
class ObjectLock {
 public:
  using Granted = std::function<void()>;

  // `type` and `id` name the object in errors: "Counter 5 of 3f9c". An id with
  // number 0 is left out.
  ObjectLock(std::string (*type)(), RRefId id) : type_(type), id_(id) {}

  // Returns false if `use` would have to wait.
  bool TryAcquire(const std::shared_ptr<const ObjectUse>& use);
  // Returns 0 if `use` gets the object at once. Else returns the number of the
  // wait; the thread that releases the object later calls `granted`, without
  // locks.
  uint64_t Acquire(std::shared_ptr<const ObjectUse> use, Granted granted);
  // Ends the wait with that number. Returns false if it was already granted.
  bool Withdraw(uint64_t number);
  void Release(const ObjectUse& use);

  // Returns a reservation, which lasts until its last pointer is destroyed. It
  // supersedes an earlier epoch of its line at once and waits for any other
  // reservation to end. Returns FailedPrecondition, which names the present
  // user, after `deadline`, or at once if that user is of a later epoch of the
  // same line.
  absl::StatusOr<std::shared_ptr<Reservation>> AwaitReservation(
      std::string who, std::chrono::steady_clock::time_point deadline,
      ReservationLine line = {});

  std::string name() const;
  // The uses that have the object, and those that wait for it, in order.
  std::vector<std::shared_ptr<const ObjectUse>> Holders() const;
  std::vector<std::shared_ptr<const ObjectUse>> Waiting() const;

 private:
  using UsePtr = std::shared_ptr<const ObjectUse>;
  struct Waiter {
    UsePtr use;
    Granted granted;
  };

  // True if no conflicting call holds the object.
  bool IsFreeForLocked(const ObjectUse& use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if a holder waits for the call of `use`.
  bool IsNestedLocked(const ObjectUse& use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeLocked(const UsePtr& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the object to the waiting uses that may have it now and returns their
  // callbacks.
  std::vector<Granted> GrantLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::string (*const type_)();
  const RRefId id_;
  mutable Mutex mutex_;
  absl::InlinedVector<UsePtr, 2> holders_ ABSL_GUARDED_BY(mutex_);
  // By number. Nested calls come first: their numbers are below kInOrder.
  std::map<uint64_t, Waiter> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<Reservation> reservation_ ABSL_GUARDED_BY(mutex_);
};

namespace internal {

// Sets, while it exists, the holds of the handler that runs on this thread and
// of the calls that wait for it. Calls that the handler makes carry them.
// Confined to its thread.
class HoldsOfThread {
 public:
  // `holds` must outlive this.
  explicit HoldsOfThread(const std::vector<HoldId>& holds);
  ~HoldsOfThread();
  HoldsOfThread(const HoldsOfThread&) = delete;
  HoldsOfThread& operator=(const HoldsOfThread&) = delete;

  static const std::vector<HoldId>& Current();

 private:
  const std::vector<HoldId>* const outer_;
};

}  // namespace internal

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
