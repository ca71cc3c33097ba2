// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "rpc/debug_info.h"
#include "rpc/frames.h"
#include "rpc/handle.h"

namespace baton::rpc::internal {

// The tables that keep objects alive across workers: the objects that this
// worker owns with their grants, its own grants of other workers' objects, and
// the RRefs that it has sent and whose arrival is not confirmed yet.
// docs/rref_protocol.md describes the protocol. Calls its port without holding
// its lock. Thread-safe.
class Ownership : public std::enable_shared_from_this<Ownership> {
 public:
  using Clock = std::chrono::steady_clock;

  class Port {
   public:
    virtual ~Port() = default;
    // Delivers `item` exactly once and in order per worker. Returns false if
    // that worker is gone; the item is then dropped for good, even if the
    // worker comes back.
    virtual bool SendControl(const WorkerInfo& to, ControlItem item,
                             std::function<void()> acked) = 0;
    // Returns OK if messages can be sent to `worker`.
    virtual absl::Status CheckWorker(const WorkerInfo& worker) = 0;
    // Destroys user objects, on another thread.
    virtual void Discard(std::vector<std::shared_ptr<void>> garbage) = 0;
    // Called after the tables have changed; a thread may wait for them to be
    // empty.
    virtual void OnOwnershipChanged() = 0;
  };

  using Resolved = std::function<void(absl::StatusOr<OwnedValue>)>;

  Ownership(WorkerInfo self, std::weak_ptr<AgentCore> agent,
            std::weak_ptr<Port> port);

  // Owner's side. `place` says where in the program the object was made, for
  // display.
  HandlePtr Own(AnyValue value, std::string place = "");
  // FinishCreation must follow.
  HandlePtr OwnPending(const ValueType& type, std::string place = "");
  // Begins the creation that `creator` asked for under its grant `fork`.
  absl::Status BeginCreation(RRefId id, ForkId fork, const WorkerInfo& creator,
                             std::string method, std::string place = "");
  void FinishCreation(RRefId id, absl::StatusOr<AnyValue> value);
  // Passes the value to `done` once it exists; NotFound if there is no such
  // object, or no longer.
  void Resolve(RRefId id, Resolved done);
  // Like Resolve, but returns Unavailable while the object is being made.
  absl::StatusOr<OwnedValue> Peek(RRefId id);

  // User's side. Makes a grant of the object that a call to `owner` will make.
  HandlePtr NewGrant(const WorkerInfo& owner, uint64_t type);
  // To be called when the owner has answered the creation.
  void ConfirmGrant(const HandlePtr& handle);
  // To be called when the creation did not reach the owner, or may not have.
  void FailGrant(const HandlePtr& handle, const absl::Status& why);

  // Grants `handles`, all confirmed, to `to`. They stay alive here until `to`
  // has confirmed their arrival. It is not asked about them before `probe_at`.
  absl::StatusOr<std::vector<Transfer>> Export(
      const std::vector<HandlePtr>& handles, const WorkerInfo& to,
      Clock::time_point probe_at);
  // To be called when the message with `forks` will not be answered any more:
  // its receiver is asked about them from `when` on.
  void ProbeFrom(const std::vector<ForkId>& forks, Clock::time_point when);
  // Takes back grants that were never sent.
  void Retract(const std::vector<ForkId>& forks);
  // Accepts the transfers that arrived from `from`. The returned handles may
  // still be unconfirmed.
  absl::StatusOr<std::vector<HandlePtr>> Import(
      const WorkerInfo& from, const std::vector<Transfer>& transfers);

  void OnControl(const WorkerInfo& from, const ControlItem& item);
  void OnDropped(const Handle& handle);
  // To be called when `worker` is gone for good. Drops its grants and fails the
  // handles to its objects with `why`.
  void OnWorkerGone(const WorkerInfo& worker, const absl::Status& why);
  void Tick(Clock::time_point now, std::chrono::milliseconds ask_again);

  // Releases all grants; their handles fail with `why` from now on.
  void ReleaseGrants(const absl::Status& why);
  // Empties all tables. Handles that are destroyed later have no effect.
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
    OwnedValue owned;  // its lock is made when first needed
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
    bool told = false;  // the owner knows the grant, or will by our kAdd
  };
  struct Sent {
    RRefId id;
    WorkerInfo to;
    HandlePtr pin;  // null when this worker is the owner
    Clock::time_point probe_at;
  };
  // What to do after the mutex is released.
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
  // Ends what waits for the answer to `item`, which was not sent.
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
  HandlePtr ImportOwnLocked(const Transfer& transfer)
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
  // By the object's address. Expired entries are erased from time to time.
  std::unordered_map<const void*, std::weak_ptr<ObjectLock>> locks_
      ABSL_GUARDED_BY(mutex_);
  size_t sweep_locks_at_ ABSL_GUARDED_BY(mutex_) = 64;
  std::map<ForkId, Grant> grants_ ABSL_GUARDED_BY(mutex_);
  std::map<ForkId, Sent> sent_ ABSL_GUARDED_BY(mutex_);
  // Grants that this worker has refused: it does not accept a late message that
  // brings one.
  NewestMap<ForkId, std::monostate> refused_ ABSL_GUARDED_BY(mutex_){65'536};
};

}  // namespace baton::rpc::internal
