// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/ids.h"
#include "rpc/methods.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {

class AgentCore;
class Ownership;

// What the copies of one RRef share: one grant (fork) of an object that another
// worker owns, or one local reference to an object that this worker owns. Its
// destruction gives that back.
//
//   state      meaning                                    goes to
//   kUnknown   the owner may not know of it yet           kConfirmed, kFailed
//   kConfirmed the owner counts it (owners: always)       kFailed
//   kFailed    never confirmed, or the owner is gone, or the agent has shut
//              down; sticky, every use gives the reason
//
// Thread-safe.
class Handle : public std::enable_shared_from_this<Handle> {
 public:
  enum class State { kUnknown, kConfirmed, kFailed };
  // What a callback does: something brief, or what may wait or copy much.
  enum class Then { kIsBrief, kMayWait };
  using Confirmed = std::function<void(const absl::Status&)>;

  struct Identity {
    RRefId id;
    ForkId fork;  // number 0 for an owner's reference
    WorkerInfo owner;
    uint64_t type = 0;
  };

  Handle(std::weak_ptr<AgentCore> agent, std::weak_ptr<Ownership> ownership,
         Identity identity, State state)
      : identity_(std::move(identity)),
        agent_(std::move(agent)),
        ownership_(std::move(ownership)),
        state_(state) {}
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  const Identity& identity() const { return identity_; }
  const RRefId& id() const { return identity_.id; }
  const ForkId& fork() const { return identity_.fork; }
  const WorkerInfo& owner() const { return identity_.owner; }
  bool is_owner() const { return identity_.fork.number == 0; }
  const std::weak_ptr<AgentCore>& agent() const { return agent_; }
  const std::weak_ptr<Ownership>& ownership() const { return ownership_; }

  State state() const;
  absl::Status failure() const;
  void Confirm();
  // False when it had failed before.
  bool FailWith(const absl::Status& why);
  // `callback` runs once the state is not kUnknown, at once when it is already.
  // A few brief ones that wait for Confirm run in it; others, and what is
  // behind them, where the agent runs continuations: all in order and before
  // those that come meanwhile. FailWith runs them itself.
  void WhenConfirmed(Confirmed callback, Then then);
  // Nothing would wait.
  bool settled() const;

  // From now on, and for good, `successor` stands for this one: see Current.
  // InvalidArgument where this one already stands for it.
  absl::Status MoveTo(std::shared_ptr<Handle> successor);
  // Null before MoveTo; then it stays as it is.
  const std::shared_ptr<Handle>& successor() const;

  // Of the call that makes the object; for the creator's handle alone.
  const Promise<void>& creation() const { return creation_; }
  void set_creation(Promise<void> creation) { creation_ = std::move(creation); }

 private:
  // Runs what waits here if none of it does more than `most`.
  void TellWaiting(Then most);

  const Identity identity_;
  const std::weak_ptr<AgentCore> agent_;
  const std::weak_ptr<Ownership> ownership_;
  Promise<void> creation_;  // constant once the handle is shared

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<Confirmed> waiting_ ABSL_GUARDED_BY(mutex_);
  Then longest_ ABSL_GUARDED_BY(mutex_) = Then::kIsBrief;  // of waiting_
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;           // until nobody waits
  // Written once, before `moved_` is true.
  std::shared_ptr<Handle> successor_;
  std::atomic<bool> moved_{false};
};

// The last of the successors of `handle`, or itself; lives as long as it does.
// Null of null.
const std::shared_ptr<Handle>& Current(const std::shared_ptr<Handle>& handle);

// Calls `done` once every handle is confirmed, or with the first failure.
void WhenAllConfirmed(const std::vector<std::shared_ptr<Handle>>& handles,
                      std::function<void(const absl::Status&)> done,
                      Handle::Then then = Handle::Then::kMayWait);
// Whether that would be at once.
bool AllSettled(const std::vector<std::shared_ptr<Handle>>& handles);

}  // namespace baton::rpc::internal
