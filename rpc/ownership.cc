// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/ownership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/shown_name.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {
namespace {

constexpr size_t kLongestPlace = 200;

// Fork number 0 stands for an owner's reference, so a grant must not have it.
absl::Status CheckFork(ForkId fork) {
  if (fork.number != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("a grant without a number");
}

}  // namespace

Ownership::Ownership(WorkerInfo self, std::weak_ptr<AgentCore> agent,
                     std::weak_ptr<Port> port)
    : self_(std::move(self)),
      agent_(std::move(agent)),
      port_(std::move(port)) {}

void Ownership::Perform(Actions actions) {
  auto port = port_.lock();
  if (port == nullptr) return;
  for (Actions::Control& control : actions.messages) {
    if (!port->SendControl(control.to, control.item,
                           std::move(control.acked))) {
      OnUnsent(control.to, control.item);
    }
  }
  if (!actions.garbage.empty()) port->Discard(std::move(actions.garbage));
  actions.pins.clear();
  port->OnOwnershipChanged();
}

HandlePtr Ownership::NewHandle(Handle::Identity identity, Handle::State state) {
  return std::make_shared<Handle>(agent_, weak_from_this(), std::move(identity),
                                  state);
}

HandlePtr Ownership::NewLocalLocked(RRefId id, Object& object, uint64_t type) {
  ++object.local_handles;
  return NewHandle({id, {}, self_, type}, Handle::State::kConfirmed);
}

HandlePtr Ownership::Own(AnyValue value, std::string place) {
  HandlePtr handle = OwnPending(*value.type, std::move(place));
  FinishCreation(handle->id(), std::move(value));
  return handle;
}

HandlePtr Ownership::OwnPending(const ValueType& type, std::string place) {
  MutexLock lock(mutex_);
  const RRefId id{self_.incarnation, next_number_++};
  if (closed_) {
    HandlePtr handle =
        NewHandle({id, {}, self_, type.id}, Handle::State::kConfirmed);
    handle->FailWith(absl::FailedPreconditionError(
        absl::StrCat("worker ", self_.name, " has shut down")));
    return handle;
  }
  Object& object = objects_[id];
  object.type_name = type.name();
  object.made_by = self_.name;
  // `place` may come from another worker
  place.resize(std::min(place.size(), kLongestPlace));
  object.made_at = std::move(place);
  return NewLocalLocked(id, object, type.id);
}

absl::Status Ownership::BeginCreation(RRefId id, ForkId fork,
                                      const WorkerInfo& creator,
                                      std::string method, std::string place) {
  if (id.creator != creator.incarnation) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", creator.name, " used an id of another worker"));
  }
  RETURN_IF_ERROR(CheckFork(fork));
  MutexLock lock(mutex_);
  if (closed_) return absl::FailedPreconditionError("shut down");
  auto [entry, added] = objects_.try_emplace(id);
  if (!added) {
    return absl::AlreadyExistsError(
        absl::StrCat("object ", id.ToString(), " exists"));
  }
  Object& object = entry->second;
  object.made_by = creator.name;
  place.resize(std::min(place.size(), kLongestPlace));
  object.made_at = place.empty() ? method : std::move(place);
  object.type_name = std::move(method);
  object.forks[fork] = {creator, Clock::now()};
  return absl::OkStatus();
}

void Ownership::FinishCreation(RRefId id, absl::StatusOr<AnyValue> value) {
  std::vector<Resolved> waiting;
  absl::StatusOr<OwnedValue> owned = OwnedValue{};
  Actions actions;
  int64_t bytes = kUnknownBytes;
  if (value.ok() && value->value != nullptr && value->type->bytes != nullptr) {
    bytes = value->type->bytes(value->value.get());
  }
  {
    MutexLock lock(mutex_);
    auto found = objects_.find(id);
    if (found == objects_.end()) return;
    Object& object = found->second;
    if (object.state != Object::State::kPending) return;
    if (value.ok()) {
      object.state = Object::State::kReady;
      object.owned.value = *value;
      object.type_name = value->type->name();
      object.bytes = bytes;
      if (!object.waiting.empty()) owned = OwnedLocked(id, object);
    } else {
      object.state = Object::State::kFailed;
      object.failure = value.status();
      owned = value.status();
    }
    waiting.swap(object.waiting);
    CollectLocked(id, actions);
  }
  for (Resolved& done : waiting) done(owned);
  Perform(std::move(actions));
}

void Ownership::Resolve(RRefId id, Resolved done) {
  absl::StatusOr<OwnedValue> value = OwnedValue{};
  {
    MutexLock lock(mutex_);
    auto found = objects_.find(id);
    if (found == objects_.end()) {
      value = absl::NotFoundError(absl::StrCat("worker ", self_.name,
                                               " has no object ", id.ToString(),
                                               "; its last handle is gone"));
    } else if (found->second.state == Object::State::kPending) {
      found->second.waiting.push_back(std::move(done));
      return;
    } else if (found->second.state == Object::State::kFailed) {
      value = found->second.failure;
    } else {
      value = OwnedLocked(id, found->second);
    }
  }
  done(std::move(value));
}

const OwnedValue& Ownership::OwnedLocked(RRefId id, Object& object) {
  const AnyValue& value = object.owned.value;
  if (object.owned.lock != nullptr || value.value == nullptr) {
    return object.owned;
  }
  if (locks_.size() >= sweep_locks_at_) {
    std::erase_if(locks_,
                  [](const auto& entry) { return entry.second.expired(); });
    sweep_locks_at_ = std::max(sweep_locks_at_, 2 * locks_.size());
  }
  std::weak_ptr<ObjectLock>& known = locks_[value.value.get()];
  object.owned.lock = known.lock();
  if (object.owned.lock == nullptr) {
    object.owned.lock = std::make_shared<ObjectLock>(value.type->name, id);
    known = object.owned.lock;
  }
  return object.owned;
}

absl::StatusOr<OwnedValue> Ownership::Peek(RRefId id) {
  MutexLock lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no object ", id.ToString()));
  }
  Object& object = found->second;
  if (object.state == Object::State::kFailed) return object.failure;
  if (object.state == Object::State::kReady) return OwnedLocked(id, object);
  return absl::UnavailableError(absl::StrCat(
      ShownName(object.type_name), " ", id.ToString(),
      " is still being made; wait for Ready() before LocalValue()"));
}

HandlePtr Ownership::NewGrant(const WorkerInfo& owner, uint64_t type) {
  MutexLock lock(mutex_);
  const RRefId id{self_.incarnation, next_number_++};
  const ForkId fork{self_.incarnation, next_number_++};
  HandlePtr handle =
      NewHandle({id, fork, owner, type}, Handle::State::kUnknown);
  if (!closed_) grants_[fork] = {handle, id, owner, false};
  return handle;
}

void Ownership::ConfirmGrant(const HandlePtr& handle) {
  {
    MutexLock lock(mutex_);
    auto found = grants_.find(handle->fork());
    if (found == grants_.end()) return;
    found->second.told = true;
  }
  handle->Confirm();
}

void Ownership::FailGrant(const HandlePtr& handle, const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    auto found = grants_.find(handle->fork());
    if (found == grants_.end() || found->second.told) return;
    grants_.erase(found);
  }
  handle->FailWith(why, absl::IsUnavailable(why) ? Handle::Owner::kIsLost
                                                 : Handle::Owner::kIsThere);
  Perform({});
}

absl::StatusOr<std::vector<Transfer>> Ownership::Export(
    const std::vector<HandlePtr>& handles, const WorkerInfo& to,
    Clock::time_point probe_at) {
  std::vector<Transfer> transfers;
  if (handles.empty()) return transfers;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    for (const HandlePtr& handle : handles) {
      status = handle->failure();
      if (status.ok() && handle->ownership().lock().get() != this) {
        status = absl::InvalidArgumentError(
            "an RRef of another agent of this process cannot be sent by this "
            "one");
      }
      auto found = objects_.find(handle->id());
      if (status.ok() && handle->is_owner() && found == objects_.end()) {
        status = absl::FailedPreconditionError("shut down");
      }
      if (!status.ok()) break;
      const ForkId fork{self_.incarnation, next_number_++};
      if (handle->is_owner()) {
        found->second.forks[fork] = {to, Clock::now()};
      }
      sent_[fork] = {handle->id(), to, handle->is_owner() ? nullptr : handle,
                     probe_at};
      transfers.push_back(
          {handle->id(), fork, handle->identity().type, handle->owner()});
    }
  }
  if (status.ok()) return transfers;
  std::vector<ForkId> forks;
  for (const Transfer& transfer : transfers) forks.push_back(transfer.fork);
  Retract(forks);
  return status;
}

void Ownership::ProbeFrom(const std::vector<ForkId>& forks,
                          Clock::time_point when) {
  MutexLock lock(mutex_);
  for (const ForkId& fork : forks) {
    auto found = sent_.find(fork);
    if (found != sent_.end()) found->second.probe_at = when;
  }
}

void Ownership::Retract(const std::vector<ForkId>& forks) {
  Actions actions;
  {
    MutexLock lock(mutex_);
    for (const ForkId& fork : forks) EndTransferLocked(fork, false, actions);
  }
  Perform(std::move(actions));
}

void Ownership::EndTransferLocked(ForkId fork, bool arrived, Actions& actions) {
  auto found = sent_.find(fork);
  if (found == sent_.end()) return;
  const RRefId id = found->second.id;
  const bool owned = found->second.pin == nullptr;
  if (!owned) actions.pins.push_back(std::move(found->second.pin));
  sent_.erase(found);
  if (owned && !arrived) DropForkLocked(id, fork, actions);
}

void Ownership::DropForkLocked(RRefId id, ForkId fork, Actions& actions) {
  auto found = objects_.find(id);
  if (found == objects_.end()) return;
  found->second.forks.erase(fork);
  CollectLocked(id, actions);
}

void Ownership::CollectLocked(RRefId id, Actions& actions) {
  auto found = objects_.find(id);
  const Object& object = found->second;
  if (object.state == Object::State::kPending || object.local_handles > 0 ||
      !object.forks.empty()) {
    return;
  }
  actions.garbage.push_back(std::move(found->second.owned.value.value));
  objects_.erase(found);
}

absl::StatusOr<std::vector<HandlePtr>> Ownership::Import(
    const WorkerInfo& from, const std::vector<Transfer>& transfers) {
  std::vector<HandlePtr> handles;
  if (transfers.empty()) return handles;
  absl::Status status;
  Actions actions;
  auto port = port_.lock();
  if (port == nullptr) return absl::FailedPreconditionError("shut down");
  for (const Transfer& transfer : transfers) {
    const bool own = SameWorker(transfer.owner, self_);
    absl::Status reach = CheckFork(transfer.fork);
    if (reach.ok() && transfer.id.number == 0) {
      reach = absl::InvalidArgumentError("a grant of no object");
    }
    if (reach.ok() && !own) reach = port->CheckWorker(transfer.owner);
    MutexLock lock(mutex_);
    if (reach.ok() && refused_.Find(transfer.fork) != nullptr) {
      reach = absl::AbortedError("the message came too late");
    }
    HandlePtr handle;
    if (reach.ok()) {
      handle = own ? ImportOwnLocked(transfer)
                   : ImportGrantLocked(from, transfer, actions);
    }
    if (reach.ok() && handle == nullptr) {
      reach = absl::NotFoundError(
          absl::StrCat("object ", transfer.id.ToString(), " is gone"));
    }
    if (reach.ok()) {
      if (own || SameWorker(transfer.owner, from)) {
        actions.messages.push_back(
            {from, {ControlKind::kAccept, transfer.id, transfer.fork}});
      }
      handles.push_back(std::move(handle));
    } else {
      RefuseLocked(transfer.fork, from, actions);
      status = std::move(reach);
    }
  }
  Perform(std::move(actions));
  if (!status.ok()) return status;
  return handles;
}

HandlePtr Ownership::ImportOwnLocked(const Transfer& transfer) {
  auto found = objects_.find(transfer.id);
  if (found == objects_.end()) return nullptr;
  return NewLocalLocked(transfer.id, found->second, transfer.type);
}

HandlePtr Ownership::ImportGrantLocked(const WorkerInfo& from,
                                       const Transfer& transfer,
                                       Actions& actions) {
  auto known = grants_.find(transfer.fork);
  if (known != grants_.end()) {
    if (HandlePtr handle = known->second.handle.lock()) return handle;
  }
  const bool from_owner = SameWorker(transfer.owner, from);
  HandlePtr handle = NewHandle(
      {transfer.id, transfer.fork, transfer.owner, transfer.type},
      from_owner ? Handle::State::kConfirmed : Handle::State::kUnknown);
  grants_[transfer.fork] = {handle, transfer.id, transfer.owner, true};
  if (!from_owner) {
    actions.messages.push_back(
        {transfer.owner,
         {ControlKind::kAdd, transfer.id, transfer.fork},
         [weak = weak_from_this(), from, fork = transfer.fork] {
           if (auto self = weak.lock()) self->OnAdded(from, fork);
         }});
  }
  return handle;
}

void Ownership::OnAdded(const WorkerInfo& from, ForkId fork) {
  HandlePtr handle;
  Actions actions;
  {
    MutexLock lock(mutex_);
    auto found = grants_.find(fork);
    if (found != grants_.end()) handle = found->second.handle.lock();
    actions.messages.push_back({from, {ControlKind::kAccept, {}, fork}});
  }
  if (handle != nullptr) handle->Confirm();
  Perform(std::move(actions));
}

void Ownership::RefuseLocked(ForkId fork, const WorkerInfo& to,
                             Actions& actions) {
  refused_.Add(fork, {});
  actions.messages.push_back({to, {ControlKind::kRefuse, {}, fork}});
}

}  // namespace baton::rpc::internal
