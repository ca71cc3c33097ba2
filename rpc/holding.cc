// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/agent_core.h"
#include "rpc/object_lock.h"
#include "rpc/shown_name.h"

// How calls wait for objects that other calls hold.
namespace baton::rpc {
namespace internal {

// A call's wait for an object. Owned by its entry in the lock's queue.
struct AgentCore::Turn {
  std::shared_ptr<ObjectLock> lock;
  std::shared_ptr<const ObjectUse> use;
  OnTurn done;
  uint64_t number = 0;
  std::atomic<Timer::Id> timer{0};
};

HoldId AgentCore::NewHold() { return {self().incarnation, ++last_hold_}; }

// Acquires the object before it takes a thread, so that calls get the object in
// the order in which they arrived.
void AgentCore::Enter(const IncomingPtr& call, const OwnedValue& object) {
  const bool looks_only =
      call->handler == nullptr && call->frame.index == kReady;
  if (object.lock == nullptr || looks_only) {
    workers_->PostOrRunInline(
        [this, call, value = object.value] { Run(call, value); });
    return;
  }
  call->id = NewHold();
  call->context->holds.push_back(call->id);
  if (object.lock->TryAcquire(call)) {
    call->held = object.lock;
    workers_->PostOrRunInline(
        [this, call, value = object.value] { Run(call, value); });
    return;
  }
  AwaitTurn(object.lock, call, call->context->cancel.token(),
            call->context->deadline,
            [this, call, object](const absl::Status& status) {
              if (!status.ok()) {
                Answer(call, status);
                return;
              }
              call->held = object.lock;
              Run(call, object.value);
            });
}

void AgentCore::AwaitTurn(const std::shared_ptr<ObjectLock>& lock,
                          const std::shared_ptr<const ObjectUse>& use,
                          const CancelToken& cancel, Clock::time_point deadline,
                          OnTurn done) {
  auto turn = std::make_shared<Turn>();
  turn->lock = lock;
  turn->use = use;
  turn->done = std::move(done);
  turn->number = lock->Acquire(use, [core = weak_from_this(), turn] {
    auto self = core.lock();
    if (self == nullptr) {
      turn->lock->Release(*turn->use);
      return;
    }
    self->timer_.Cancel(turn->timer);
    self->workers_->Post([turn] { turn->done(absl::OkStatus()); });
  });
  if (turn->number == 0) {
    workers_->Post([turn] { turn->done(absl::OkStatus()); });
    return;
  }
  const auto give_up =
      [core = weak_from_this(),
       weak = std::weak_ptr<Turn>(turn)](const absl::Status& why) {
        auto self = core.lock();
        auto turn = weak.lock();
        if (self == nullptr || turn == nullptr) return;
        if (!turn->lock->Withdraw(turn->number)) return;
        turn->done(absl::IsDeadlineExceeded(why)
                       ? absl::DeadlineExceededError(absl::StrCat(
                             why.message(), ": ",
                             self->HoldersOf(*turn->lock, *turn->use)))
                       : why);
      };
  cancel.OnCancel(give_up);
  if (deadline == Clock::time_point::max()) return;
  // Give up early enough for the error to reach the caller before its own
  // deadline.
  const auto now = Clock::now();
  const auto early =
      std::min<Clock::duration>((deadline - now) / 10, std::chrono::seconds(1));
  turn->timer = timer_.At(deadline - early, [this, give_up] {
    completions_->Post([give_up] {
      give_up(absl::DeadlineExceededError("its turn has not come in time"));
    });
  });
}

std::string AgentCore::HoldersOf(const ObjectLock& lock,
                                 const ObjectUse& use) const {
  std::vector<std::string> holders;
  bool may_wait_for_it = false;
  for (const auto& holder : lock.Holders()) {
    std::string text = holder->ToString();
    const std::vector<std::string> calls = CallsWithin(holder->id);
    if (!calls.empty()) {
      absl::StrAppend(&text, ", which has called ",
                      absl::StrJoin(calls, " and "));
      may_wait_for_it = true;
    }
    holders.push_back(std::move(text));
  }
  std::string text = absl::StrCat(
      lock.name(), " is used by ",
      holders.empty() ? "calls before it" : absl::StrJoin(holders, "; "));
  if (may_wait_for_it && !use.within.empty()) {
    absl::StrAppend(&text, "; ", std::string(use.method), " of worker ",
                    use.caller,
                    " was called by a handler that holds an object itself: two "
                    "that wait for each other's objects are a deadlock "
                    "(docs/thread_model.md)");
  }
  return text;
}

std::vector<std::string> AgentCore::CallsWithin(HoldId hold) const {
  std::vector<std::string> calls;
  MutexLock lock(mutex_);
  for (const auto& [due, call] : outgoing_) {
    if (!call->within.empty() && call->within.back() == hold) {
      calls.push_back(absl::StrCat(ShownName(call->spec.name), " at worker ",
                                   call->to.name));
    }
  }
  return calls;
}

namespace {

// A call that wants several objects together.
struct Gathering {
  CallContext call;
  std::vector<std::shared_ptr<ObjectLock>> locks;
  std::shared_ptr<const ObjectUse> use;
  OnHold done;
};

// Tries to acquire all objects. The object with index `has` is already held,
// unless `has` is the number of objects.
void Gather(const std::shared_ptr<Gathering>& wanted, size_t has) {
  const auto& locks = wanted->locks;
  size_t i = 0;
  while (i < locks.size() && (i == has || locks[i]->TryAcquire(wanted->use))) {
    ++i;
  }
  if (i == locks.size()) {
    wanted->done(ObjectHold(locks, wanted->use));
    return;
  }
  for (size_t k = 0; k < locks.size(); ++k) {
    if (k < i || k == has) locks[k]->Release(*wanted->use);
  }
  wanted->call.agent().core()->AwaitTurn(
      locks[i], wanted->use, wanted->call.token(), wanted->call.deadline(),
      [wanted, i](const absl::Status& status) {
        if (status.ok()) {
          Gather(wanted, i);
        } else {
          wanted->done(status);
        }
      });
}

}  // namespace
}  // namespace internal

ObjectHold::ObjectHold(std::vector<std::shared_ptr<ObjectLock>> locks,
                       std::shared_ptr<const ObjectUse> use)
    : locks_(std::move(locks)), use_(std::move(use)), holds_(use_->within) {
  holds_.push_back(use_->id);
}

ObjectHold::~ObjectHold() {
  for (const auto& lock : locks_) lock->Release(*use_);
}

void HoldObjects(const CallContext& call,
                 std::vector<std::shared_ptr<ObjectLock>> locks, Access access,
                 OnHold done) {
  std::sort(locks.begin(), locks.end());
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  auto use = std::make_shared<ObjectUse>();
  use->id = call.agent().core()->NewHold();
  use->within = call.holds();
  use->access = access;
  use->method = call.method();
  use->caller = call.caller().name;
  use->started = std::chrono::steady_clock::now();
  auto wanted = std::make_shared<internal::Gathering>(internal::Gathering{
      call, std::move(locks), std::move(use), std::move(done)});
  const size_t none = wanted->locks.size();
  internal::Gather(wanted, none);
}

}  // namespace baton::rpc
