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
// worker owns, or one local reference to an object that this worker owns. The
// destructor releases it.
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
  // Whether a callback is brief, or may block or copy many bytes.
  enum class Then { kIsBrief, kMayWait };
  using Confirmed = std::function<void(const absl::Status&)>;
  using OwnerLost =
      std::function<void(const std::shared_ptr<Handle>&, const absl::Status&)>;

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
  // Returns false if it had already failed. With kIsLost it calls the handlers
  // of OnOwnerLost.
  enum class Owner { kIsThere, kIsLost };
  bool FailWith(const absl::Status& why, Owner owner = Owner::kIsThere);
  // See RRef::OnOwnerLost.
  void OnOwnerLost(OwnerLost handler);
  // Runs `callback` once the state is not kUnknown; at once if it already is
  // not. Confirm itself runs the waiting callbacks if they are few and all
  // brief; otherwise they run where the agent runs continuations. They run in
  // order and before callbacks that are added meanwhile. FailWith runs them
  // itself.
  void WhenConfirmed(Confirmed callback, Then then);
  // True if WhenConfirmed would run its callback at once.
  bool settled() const;

  // Makes `successor` replace this handle permanently: see Current. Returns
  // InvalidArgument if this handle already replaces `successor`.
  absl::Status MoveTo(std::shared_ptr<Handle> successor);
  // Null before MoveTo; never changes after it.
  const std::shared_ptr<Handle>& successor() const;

  // The outcome of the call that makes the object; only set in the creator's
  // handle.
  const Promise<void>& creation() const { return creation_; }
  void set_creation(Promise<void> creation) { creation_ = std::move(creation); }

 private:
  // Runs the waiting callbacks if all are within `most`, else passes them on to
  // the agent's executor.
  void TellWaiting(Then most);
  void TellLost(std::vector<OwnerLost> handlers, const absl::Status& why);

  const Identity identity_;
  const std::weak_ptr<AgentCore> agent_;
  const std::weak_ptr<Ownership> ownership_;
  Promise<void> creation_;  // constant once the handle is shared

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<Confirmed> waiting_ ABSL_GUARDED_BY(mutex_);
  // The longest in waiting_.
  Then longest_ ABSL_GUARDED_BY(mutex_) = Then::kIsBrief;
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;  // callbacks are being run
  Owner owner_ ABSL_GUARDED_BY(mutex_) = Owner::kIsThere;
  std::vector<OwnerLost> on_owner_lost_ ABSL_GUARDED_BY(mutex_);
  // Written once, before `moved_` is true.
  std::shared_ptr<Handle> successor_;
  std::atomic<bool> moved_{false};
};

// Returns the last in the chain of successors of `handle`, or `handle` itself
// if it has none. The result lives as long as `handle`. Null for null.
const std::shared_ptr<Handle>& Current(const std::shared_ptr<Handle>& handle);

// Calls `done` once every handle is confirmed, or with the first failure.
void WhenAllConfirmed(const std::vector<std::shared_ptr<Handle>>& handles,
                      std::function<void(const absl::Status&)> done,
                      Handle::Then then = Handle::Then::kMayWait);
// True if WhenAllConfirmed would call `done` at once.
bool AllSettled(const std::vector<std::shared_ptr<Handle>>& handles);

}  // namespace baton::rpc::internal
