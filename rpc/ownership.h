// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/debug_info.h"
#include "rpc/frames.h"
#include "rpc/handle.h"

namespace baton::rpc::internal {

// What keeps objects alive across workers: the owner's table of objects and
// their grants, this worker's own grants, and the RRefs that it has sent and
// whose arrival it does not know of yet. docs/rref_protocol.md has the messages
// and why they suffice. Calls its port without its lock. Thread-safe.
class Ownership : public std::enable_shared_from_this<Ownership> {
 public:
  using Clock = std::chrono::steady_clock;

  class Port {
   public:
    virtual ~Port() = default;
    // Exactly once and in order per worker. False when that worker is gone:
    // the item is dropped, even if the worker should be heard again.
    virtual bool SendControl(const WorkerInfo& to, ControlItem item,
                             std::function<void()> acked) = 0;
    // Whether `worker` can be sent to at all.
    virtual absl::Status CheckWorker(const WorkerInfo& worker) = 0;
    // Destroys what users made: not on this thread.
    virtual void Discard(std::vector<std::shared_ptr<void>> garbage) = 0;
    // Tables changed; somebody may wait for them to be empty.
    virtual void OnOwnershipChanged() = 0;
  };

  using Resolved = std::function<void(absl::StatusOr<OwnedValue>)>;

  Ownership(WorkerInfo self, std::weak_ptr<AgentCore> agent,
            std::weak_ptr<Port> port);

  // Owner's side.
  // `place`: where in the program, for people.
  HandlePtr Own(AnyValue value, std::string place = "");
  // FinishCreation follows.
  HandlePtr OwnPending(const ValueType& type, std::string place = "");
  // A creation asked for by `creator` under its grant `fork`.
  absl::Status BeginCreation(RRefId id, ForkId fork, const WorkerInfo& creator,
                             std::string method, std::string place = "");
  void FinishCreation(RRefId id, absl::StatusOr<AnyValue> value);
  // The value once it is there; NotFound for an object that is not (any more).
  void Resolve(RRefId id, Resolved done);
  // As Resolve, but Unavailable while it is being made.
  absl::StatusOr<OwnedValue> Peek(RRefId id);

  // User's side: a grant of what a call to `owner` will make.
  HandlePtr NewGrant(const WorkerInfo& owner, uint64_t type);
  // The owner has answered the creation.
  void ConfirmGrant(const HandlePtr& handle);
  // Its creation did not reach the owner, or is not known to have.
  void FailGrant(const HandlePtr& handle, const absl::Status& why);

  // Grants confirmed `handles` to `to`. They stay alive here until `to` has
  // said that they arrived; not before `probe_at` it is asked.
  absl::StatusOr<std::vector<Transfer>> Export(
      const std::vector<HandlePtr>& handles, const WorkerInfo& to,
      Clock::time_point probe_at);
  // The message with `transfers` will not be answered any more.
  void ProbeFrom(const std::vector<ForkId>& forks, Clock::time_point when);
  // They were never sent.
  void Retract(const std::vector<ForkId>& forks);
  // Takes what arrived from `from`. The handles may still be unconfirmed.
  absl::StatusOr<std::vector<HandlePtr>> Import(
      const WorkerInfo& from, const std::vector<Transfer>& transfers);

  void OnControl(const WorkerInfo& from, const ControlItem& item);
  void OnDropped(const Handle& handle);
  // `worker` is gone for good: reaps its grants and fails the handles to what
  // it owned with `why`.
  void OnWorkerGone(const WorkerInfo& worker, const absl::Status& why);
  void Tick(Clock::time_point now, std::chrono::milliseconds ask_again);

  // Gives back all grants; their handles fail with `why` from now on.
  void ReleaseGrants(const absl::Status& why);
  // Drops everything; later drops of handles do nothing.
  void Close(const absl::Status& why);

  struct Counts {
    size_t objects = 0;
    size_t held_by_others = 0;  // objects with a grant
    size_t grants = 0;
    size_t transfers = 0;
  };
  Counts counts() const;
  std::vector<ObjectInfo> Objects() const;

 private:
  struct Holder {
    WorkerInfo worker;
    Clock::time_point since;
  };
  struct Object {
    enum class State { kPending, kReady, kFailed } state = State::kPending;
    OwnedValue owned;  // the lock once somebody has asked for it
    absl::Status failure;
    std::string type_name;
    std::map<ForkId, Holder> forks;
    int local_handles = 0;
    std::vector<Resolved> waiting;
    Clock::time_point since = Clock::now();
    int64_t bytes = kUnknownBytes;
    std::string made_by;
    std::string made_at;
  };
  struct Grant {
    std::weak_ptr<Handle> handle;
    RRefId id;
    WorkerInfo owner;
    bool told = false;  // the owner knows of it or will, by our kAdd
  };
  struct Sent {
    RRefId id;
    WorkerInfo to;
    HandlePtr pin;  // null when this worker is the owner
    Clock::time_point probe_at;
  };
  // What to do once the lock is released.
  struct Actions {
    std::vector<std::shared_ptr<void>> garbage;
    std::vector<HandlePtr> pins;
    struct Control {
      WorkerInfo to;
      ControlItem item;
      std::function<void()> acked = nullptr;
    };
    std::vector<Control> messages;
  };

  void Perform(Actions actions);
  // Somebody would wait for the answer to it.
  void OnUnsent(const WorkerInfo& to, const ControlItem& item);
  HandlePtr NewHandle(Handle::Identity identity, Handle::State state);
  HandlePtr NewLocalLocked(RRefId id, Object& object, uint64_t type)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropForkLocked(RRefId id, ForkId fork, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectLocked(RRefId id, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const OwnedValue& OwnedLocked(RRefId id, Object& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTransferLocked(ForkId fork, bool arrived, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseLocked(ForkId fork, const WorkerInfo& to, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  HandlePtr ImportOwnLocked(const Transfer& transfer, Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  HandlePtr ImportGrantLocked(const WorkerInfo& from, const Transfer& transfer,
                              Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAdded(const WorkerInfo& from, ForkId fork);
  void OnCreated(const WorkerInfo& from, const ControlItem& item);
  void OnProbe(const WorkerInfo& from, const ControlItem& item);

  const WorkerInfo self_;
  const std::weak_ptr<AgentCore> agent_;
  const std::weak_ptr<Port> port_;

  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unordered_map<RRefId, Object> objects_ ABSL_GUARDED_BY(mutex_);
  // By the object. Those that are gone are swept out now and then.
  std::unordered_map<const void*, std::weak_ptr<ObjectLock>> locks_
      ABSL_GUARDED_BY(mutex_);
  size_t sweep_locks_at_ ABSL_GUARDED_BY(mutex_) = 64;
  std::map<ForkId, Grant> grants_ ABSL_GUARDED_BY(mutex_);
  std::map<ForkId, Sent> sent_ ABSL_GUARDED_BY(mutex_);
  // Grants refused on request of their sender: a late message that brings one
  // is not accepted. The oldest are forgotten.
  std::set<ForkId> refused_ ABSL_GUARDED_BY(mutex_);
  std::deque<ForkId> refused_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
