// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/ownership.h"
#include "rpc/shown_name.h"
#include "rpc/worker.h"

// How the tables react to other workers' messages, destroyed handles and lost
// workers.
namespace baton::rpc::internal {

void Ownership::OnControl(const WorkerInfo& from, const ControlItem& item) {
  Actions actions;
  switch (item.kind) {
    case ControlKind::kCreated:
      OnCreated(from, item);
      return;
    case ControlKind::kProbe:
      OnProbe(from, item);
      return;
    case ControlKind::kAdd: {
      MutexLock lock(mutex_);
      auto found = objects_.find(item.id);
      if (found != objects_.end() && item.fork.number != 0) {
        found->second.forks[item.fork] = {from, Clock::now()};
      }
      break;
    }
    case ControlKind::kDelete: {
      MutexLock lock(mutex_);
      auto found = objects_.find(item.id);
      if (found == objects_.end()) break;
      auto fork = found->second.forks.find(item.fork);
      if (fork == found->second.forks.end()) break;
      if (fork->second.worker.name != from.name) break;
      DropForkLocked(item.id, item.fork, actions);
      break;
    }
    case ControlKind::kAccept:
    case ControlKind::kRefuse: {
      MutexLock lock(mutex_);
      auto found = sent_.find(item.fork);
      if (found == sent_.end() || found->second.to.name != from.name) break;
      EndTransferLocked(item.fork, item.kind == ControlKind::kAccept, actions);
      break;
    }
    case ControlKind::kLeaving:
    case ControlKind::kPing:
      break;
  }
  Perform(std::move(actions));
}

// A creation that this worker gave up on may still have succeeded. The grant
// then has no handle here and is released.
void Ownership::OnCreated(const WorkerInfo& from, const ControlItem& item) {
  HandlePtr handle;
  Actions actions;
  {
    MutexLock lock(mutex_);
    auto found = grants_.find(item.fork);
    if (found != grants_.end()) {
      handle = found->second.handle.lock();
      if (handle != nullptr) found->second.told = true;
    }
    if (handle == nullptr) {
      actions.messages.push_back(
          {from, {ControlKind::kDelete, item.id, item.fork}});
    }
  }
  if (handle != nullptr) handle->Confirm();
  Perform(std::move(actions));
}

void Ownership::OnProbe(const WorkerInfo& from, const ControlItem& item) {
  Actions actions;
  {
    MutexLock lock(mutex_);
    // If the grant is here, Accept has been or will be sent.
    if (grants_.contains(item.fork)) return;
    RefuseLocked(item.fork, from, actions);
  }
  Perform(std::move(actions));
}

// Ends only what belongs to the unsent item. It must not be sent later, because
// an Add could then arrive after the Delete of its grant. Nor may all of the
// worker's grants be dropped, because it may have come back and been granted
// new ones since.
void Ownership::OnUnsent(const WorkerInfo& to, const ControlItem& item) {
  HandlePtr failed;
  Actions actions;
  if (item.kind == ControlKind::kAdd) {
    MutexLock lock(mutex_);
    auto found = grants_.find(item.fork);
    if (found == grants_.end()) return;
    failed = found->second.handle.lock();
    grants_.erase(found);
  } else if (item.kind == ControlKind::kProbe) {
    MutexLock lock(mutex_);
    EndTransferLocked(item.fork, false, actions);
  } else {
    return;
  }
  if (failed != nullptr) {
    failed->FailWith(
        absl::UnavailableError(absl::StrCat("worker ", to.name, " is gone")),
        Handle::Owner::kIsLost);
  }
  Perform(std::move(actions));
}

void Ownership::OnDropped(const Handle& handle) {
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    if (handle.is_owner()) {
      auto found = objects_.find(handle.id());
      if (found == objects_.end()) return;
      --found->second.local_handles;
      CollectLocked(handle.id(), actions);
    } else {
      auto found = grants_.find(handle.fork());
      if (found == grants_.end() || !found->second.handle.expired()) return;
      // A grant that the owner has not been told of needs no message: if the
      // creation arrives after all, OnCreated answers.
      if (found->second.told) {
        actions.messages.push_back(
            {found->second.owner,
             {ControlKind::kDelete, handle.id(), handle.fork()}});
      }
      grants_.erase(found);
    }
  }
  Perform(std::move(actions));
}

void Ownership::OnWorkerGone(const WorkerInfo& worker,
                             const absl::Status& why) {
  Actions actions;
  std::vector<HandlePtr> lost;
  {
    MutexLock lock(mutex_);
    for (auto it = sent_.begin(); it != sent_.end();) {
      const ForkId fork = it->first;
      const bool gone = IsIncarnation(it->second.to, worker);
      ++it;
      if (gone) EndTransferLocked(fork, false, actions);
    }
    std::vector<RRefId> touched;
    for (auto& [id, object] : objects_) {
      if (std::erase_if(object.forks, [&](const auto& fork) {
            return IsIncarnation(fork.second.worker, worker);
          }) > 0) {
        touched.push_back(id);
      }
    }
    for (const RRefId& id : touched) CollectLocked(id, actions);
    for (auto it = grants_.begin(); it != grants_.end();) {
      if (!IsIncarnation(it->second.owner, worker)) {
        ++it;
        continue;
      }
      if (HandlePtr handle = it->second.handle.lock()) {
        lost.push_back(std::move(handle));
      }
      it = grants_.erase(it);
    }
  }
  for (const HandlePtr& handle : lost) {
    handle->FailWith(why, Handle::Owner::kIsLost);
  }
  Perform(std::move(actions));
}

void Ownership::Tick(Clock::time_point now,
                     std::chrono::milliseconds ask_again) {
  Actions actions;
  {
    MutexLock lock(mutex_);
    for (auto& [fork, sent] : sent_) {
      if (now < sent.probe_at) continue;
      sent.probe_at = now + ask_again;
      actions.messages.push_back(
          {sent.to, {ControlKind::kProbe, sent.id, fork}});
    }
  }
  if (!actions.messages.empty()) Perform(std::move(actions));
}

void Ownership::ReleaseGrants(const absl::Status& why) {
  Actions actions;
  std::vector<HandlePtr> released;
  {
    MutexLock lock(mutex_);
    for (auto& [fork, grant] : grants_) {
      if (HandlePtr handle = grant.handle.lock()) {
        released.push_back(std::move(handle));
      }
      if (grant.told) {
        actions.messages.push_back(
            {grant.owner, {ControlKind::kDelete, grant.id, fork}});
      }
    }
    grants_.clear();
  }
  for (const HandlePtr& handle : released) handle->FailWith(why);
  Perform(std::move(actions));
}

void Ownership::Close(const absl::Status& why) {
  std::unordered_map<RRefId, Object> objects;
  std::map<ForkId, Grant> grants;
  std::map<ForkId, Sent> sent;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    objects.swap(objects_);
    grants.swap(grants_);
    sent.swap(sent_);
  }
  for (auto& [fork, grant] : grants) {
    if (HandlePtr handle = grant.handle.lock()) handle->FailWith(why);
  }
  for (auto& [id, object] : objects) {
    for (Resolved& done : object.waiting) done(why);
  }
}

Ownership::Counts Ownership::counts() const {
  MutexLock lock(mutex_);
  Counts counts{objects_.size(), 0, grants_.size(), sent_.size()};
  for (const auto& [id, object] : objects_) {
    if (!object.forks.empty()) ++counts.held_by_others;
  }
  return counts;
}

std::vector<ObjectInfo> Ownership::Objects() const {
  static constexpr const char* kStates[] = {"pending", "ready", "failed"};
  std::vector<ObjectInfo> all;
  std::vector<std::shared_ptr<ObjectLock>> locks;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, object] : objects_) {
      ObjectInfo info;
      info.id = id.ToString();
      info.type = ShownName(object.type_name);
      info.state = kStates[static_cast<int>(object.state)];
      for (const auto& [fork, holder] : object.forks) {
        info.holders.push_back(holder.worker.name);
      }
      info.local_handles = object.local_handles;
      info.bytes = object.bytes;
      info.made_by = object.made_by;
      info.made_at = object.made_at;
      info.age_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        Clock::now() - object.since)
                        .count();
      all.push_back(std::move(info));
      locks.push_back(object.owned.lock);
    }
  }
  // Not under the mutex: if the last pointer to a call is dropped here, its
  // handles are destroyed, which locks the mutex.
  for (size_t i = 0; i < all.size(); ++i) {
    if (locks[i] == nullptr) continue;
    for (const auto& use : locks[i]->Holders()) {
      all[i].used_by.push_back(use->ToString());
    }
    for (const auto& use : locks[i]->Waiting()) {
      all[i].waited_for_by.push_back(use->ToString());
    }
  }
  return all;
}

}  // namespace baton::rpc::internal
