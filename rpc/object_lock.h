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
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/ids.h"

namespace baton::rpc {

// How a call uses an object: beside other shared ones, or alone.
enum class Access { kShared, kExclusive };

// Who uses an object or waits for it, and what for. Constant once a lock has
// it.
struct ObjectUse {
  HoldId id;
  // The holds of the calls that wait for this one, outermost first.
  std::vector<HoldId> within;
  Access access = Access::kExclusive;
  std::string_view method;  // "Stage::Forward"; outlives the use
  std::string caller;       // a worker
  std::chrono::steady_clock::time_point started;  // the call

  std::string ToString() const;  // "Stage::Forward of worker alice (93 ms ago)"
};

// Users of one object that take over from each other, as pipelines that are
// made anew do: the later epoch has it, whatever became of the earlier. An
// empty line is nobody's.
struct ReservationLine {
  std::string name{};
  uint64_t epoch = 0;
};

// Keeps an object for one user beside whom no other of the kind may be: as
// stage of a pipeline, say. Calls do not mind it. Thread-safe.
class Reservation {
 public:
  explicit Reservation(std::string who, ReservationLine line = {})
      : who_(std::move(who)), line_(std::move(line)) {}
  ~Reservation() { ended_.Set(absl::OkStatus()); }

  const std::string& who() const { return who_; }
  const ReservationLine& line() const { return line_; }
  Future<void> Ended() const { return ended_.future(); }
  // A later epoch has the object.
  bool superseded() const { return superseded_.load(); }
  void Supersede() { superseded_.store(true); }

 private:
  const std::string who_;
  const ReservationLine line_;
  const Promise<void> ended_;
  std::atomic<bool> superseded_{false};
};

// Lets one call at a time use an object, or several shared ones. Those that
// wait get it in the order in which they came, so that shared calls starve no
// exclusive one. A call that a holder waits for comes in at once, as if the
// holder were not there: it conflicts only with holders that are no ancestors
// of it. No thread waits: whoever lets go grants what may go on. Thread-safe.
class ObjectLock {
 public:
  using Granted = std::function<void()>;

  // `type` and `id` name the object in errors: "Counter 5 of 3f9c". An id of
  // number 0 is not named.
  ObjectLock(std::string (*type)(), RRefId id) : type_(type), id_(id) {}

  // False when `use` would have to wait.
  bool TryAcquire(const std::shared_ptr<const ObjectUse>& use);
  // 0 when `use` has it at once. Else the number under which it waits:
  // `granted` is called, without locks, by whoever lets go of the object.
  uint64_t Acquire(std::shared_ptr<const ObjectUse> use, Granted granted);
  // True when this keeps the use from waiting on; false once it was granted.
  bool Withdraw(uint64_t number);
  void Release(const ObjectUse& use);

  // Lasts until its last pointer is gone. Waits for another to end, but for an
  // earlier epoch of its line, which it supersedes at once; FailedPrecondition
  // says, after `deadline`, who it is that has it, and at once that a later
  // epoch has.
  absl::StatusOr<std::shared_ptr<Reservation>> AwaitReservation(
      std::string who, std::chrono::steady_clock::time_point deadline,
      ReservationLine line = {});

  std::string name() const;
  // Those that have it, and those that wait, in order.
  std::vector<std::shared_ptr<const ObjectUse>> Holders() const;
  std::vector<std::shared_ptr<const ObjectUse>> Waiting() const;

 private:
  using UsePtr = std::shared_ptr<const ObjectUse>;
  struct Waiter {
    UsePtr use;
    Granted granted;
  };

  // No other call is in the way of it.
  bool IsFreeForLocked(const ObjectUse& use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A holder waits for it.
  bool IsNestedLocked(const ObjectUse& use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeLocked(const UsePtr& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those that may go on now have the object.
  std::vector<Granted> GrantLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::string (*const type_)();
  const RRefId id_;
  mutable Mutex mutex_;
  absl::InlinedVector<UsePtr, 2> holders_ ABSL_GUARDED_BY(mutex_);
  // Nested calls first: they have numbers below kInOrder.
  std::map<uint64_t, Waiter> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<Reservation> reservation_ ABSL_GUARDED_BY(mutex_);
};

namespace internal {

// The holds of the handler that runs on this thread, and of the calls that wait
// for it: calls that it makes are within them. Confined to its thread.
class HoldsOfThread {
 public:
  explicit HoldsOfThread(const std::vector<HoldId>& holds);  // outlive it
  ~HoldsOfThread();
  HoldsOfThread(const HoldsOfThread&) = delete;
  HoldsOfThread& operator=(const HoldsOfThread&) = delete;

  static const std::vector<HoldId>& Current();

 private:
  const std::vector<HoldId>* const outer_;
};

}  // namespace internal
}  // namespace baton::rpc
