// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/object_lock.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/shown_name.h"

namespace baton::rpc {
namespace {

// The numbers of waiting uses that are not nested begin here.
constexpr uint64_t kInOrder = uint64_t{1} << 63;

bool IsWithin(const ObjectUse& use, const ObjectUse& holder) {
  return std::find(use.within.begin(), use.within.end(), holder.id) !=
         use.within.end();
}

bool Succeeds(const Reservation& later, const Reservation& earlier) {
  return !later.line().name.empty() &&
         later.line().name == earlier.line().name &&
         later.line().epoch > earlier.line().epoch;
}

}  // namespace

std::string ObjectUse::ToString() const {
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started);
  return absl::StrCat(std::string(method), " of worker ", caller, " (",
                      age.count(), " ms ago)");
}

bool ObjectLock::IsFreeForLocked(const ObjectUse& use) const {
  return std::all_of(
      holders_.begin(), holders_.end(), [&](const UsePtr& holder) {
        const bool together =
            holder->access == Access::kShared && use.access == Access::kShared;
        return together || IsWithin(use, *holder);
      });
}

bool ObjectLock::IsNestedLocked(const ObjectUse& use) const {
  if (use.within.empty()) return false;
  return std::any_of(
      holders_.begin(), holders_.end(),
      [&](const UsePtr& holder) { return IsWithin(use, *holder); });
}

bool ObjectLock::TakeLocked(const UsePtr& use) {
  if (!waiting_.empty() && !IsNestedLocked(*use)) return false;
  if (!IsFreeForLocked(*use)) return false;
  holders_.push_back(use);
  return true;
}

bool ObjectLock::TryAcquire(const UsePtr& use) {
  MutexLock lock(mutex_);
  return TakeLocked(use);
}

uint64_t ObjectLock::Acquire(UsePtr use, Granted granted) {
  MutexLock lock(mutex_);
  if (TakeLocked(use)) return 0;
  const uint64_t number =
      ++last_ + (IsNestedLocked(*use) ? uint64_t{0} : kInOrder);
  waiting_.emplace(number, Waiter{std::move(use), std::move(granted)});
  return number;
}

bool ObjectLock::Withdraw(uint64_t number) {
  std::map<uint64_t, Waiter>::node_type withdrawn;
  std::vector<Granted> granted;
  {
    MutexLock lock(mutex_);
    withdrawn = waiting_.extract(number);
    if (!withdrawn.empty()) granted = GrantLocked();
  }
  for (const Granted& go_on : granted) go_on();
  return !withdrawn.empty();
}

void ObjectLock::Release(const ObjectUse& use) {
  std::vector<Granted> granted;
  UsePtr released;  // destroyed after the lock is released
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(
        holders_.begin(), holders_.end(),
        [&](const UsePtr& holder) { return holder.get() == &use; });
    if (found == holders_.end()) return;
    released = std::move(*found);
    holders_.erase(found);
    if (!waiting_.empty()) granted = GrantLocked();
  }
  for (const Granted& go_on : granted) go_on();
}

std::vector<ObjectLock::Granted> ObjectLock::GrantLocked() {
  std::vector<Granted> granted;
  bool nested_waits = false;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const bool nested = next->first < kInOrder;
    // The object's holder waits for the nested call, so no other use may go
    // first.
    if (!nested && nested_waits) break;
    if (IsFreeForLocked(*next->second.use)) {
      holders_.push_back(std::move(next->second.use));
      granted.push_back(std::move(next->second.granted));
      next = waiting_.erase(next);
    } else if (nested) {
      nested_waits = true;
      ++next;
    } else {
      break;
    }
  }
  return granted;
}

absl::StatusOr<std::shared_ptr<Reservation>> ObjectLock::AwaitReservation(
    std::string who, std::chrono::steady_clock::time_point deadline,
    ReservationLine line) {
  auto mine = std::make_shared<Reservation>(std::move(who), std::move(line));
  for (;;) {
    std::shared_ptr<Reservation> other;
    {
      MutexLock lock(mutex_);
      other = reservation_.lock();
      if (other == nullptr) {
        reservation_ = mine;
        return mine;
      }
      if (Succeeds(*mine, *other)) {
        other->Supersede();
        reservation_ = mine;
        return mine;
      }
    }
    if (Succeeds(*other, *mine)) {
      return absl::FailedPreconditionError(
          absl::StrCat(name(), " is ", other->who(), ", which was made later"));
    }
    const Future<void> ended = other->Ended();
    const std::string has_it = other->who();
    other = nullptr;  // may be the last pointer to it
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !ended.Await(left).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(name(), " is ", has_it));
    }
  }
}

std::string ObjectLock::name() const {
  const std::string type = ShownName(type_());
  return id_.number == 0 ? type : absl::StrCat(type, " ", id_.ToString());
}

std::vector<ObjectLock::UsePtr> ObjectLock::Holders() const {
  MutexLock lock(mutex_);
  return {holders_.begin(), holders_.end()};
}

std::vector<ObjectLock::UsePtr> ObjectLock::Waiting() const {
  MutexLock lock(mutex_);
  std::vector<UsePtr> waiting;
  for (const auto& [number, waiter] : waiting_) waiting.push_back(waiter.use);
  return waiting;
}

namespace internal {
namespace {

const std::vector<HoldId> kNoHolds;
thread_local const std::vector<HoldId>* holds_of_thread = &kNoHolds;

}  // namespace

HoldsOfThread::HoldsOfThread(const std::vector<HoldId>& holds)
    : outer_(holds_of_thread) {
  holds_of_thread = &holds;
}

HoldsOfThread::~HoldsOfThread() { holds_of_thread = outer_; }

const std::vector<HoldId>& HoldsOfThread::Current() { return *holds_of_thread; }

}  // namespace internal
}  // namespace baton::rpc
