// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rref.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rpc/agent_core.h"
#include "rpc/shown_name.h"

namespace baton::rpc {

std::string RRefId::ToString() const {
  return absl::StrFormat("%d of %04x", number, creator & 0xffff);
}

namespace internal {
namespace {

WorkerInfo Unknown(const Target& target) {
  WorkerInfo worker;
  worker.name = target.ToString();
  return worker;
}

}  // namespace

absl::Status MoveHandle(const HandlePtr& from, const HandlePtr& to) {
  if (from == nullptr || to == nullptr) {
    return absl::InvalidArgumentError(
        "an RRef that names nothing moves nowhere");
  }
  return Current(from)->MoveTo(Current(to));
}

RRefId IdOf(const HandlePtr& unmoved) {
  const HandlePtr& handle = Current(unmoved);
  return handle == nullptr ? RRefId{} : handle->id();
}

const WorkerInfo& OwnerOf(const HandlePtr& unmoved) {
  const HandlePtr& handle = Current(unmoved);
  static const WorkerInfo nobody;
  return handle == nullptr ? nobody : handle->owner();
}

bool IsOwner(const HandlePtr& unmoved) {
  const HandlePtr& handle = Current(unmoved);
  return handle != nullptr && handle->is_owner();
}

bool IsConfirmed(const HandlePtr& unmoved) {
  const HandlePtr& handle = Current(unmoved);
  return handle != nullptr && handle->state() == Handle::State::kConfirmed;
}

void OnOwnerLost(const HandlePtr& unmoved, Handle::OwnerLost handler) {
  const HandlePtr& handle = Current(unmoved);
  if (handle != nullptr) handle->OnOwnerLost(std::move(handler));
}

std::string Describe(const HandlePtr& unmoved, const std::string& type) {
  const HandlePtr& handle = Current(unmoved);
  if (handle == nullptr)
    return absl::StrCat("RRef<", ShownName(type), ">(nothing)");
  return absl::StrCat("RRef<", ShownName(type), ">(", handle->id().ToString(),
                      ", owner ", handle->owner().name, ")");
}

absl::StatusOr<OwnedValue> LocalValueOf(const HandlePtr& unmoved,
                                        const ValueType& type) {
  const HandlePtr& handle = Current(unmoved);
  if (handle == nullptr) {
    return absl::FailedPreconditionError("the RRef names nothing");
  }
  if (!handle->is_owner()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(handle, type.name()), " has its value at worker ",
                     handle->owner().name, "; use Fetch() or a call"));
  }
  RETURN_IF_ERROR(handle->failure());
  auto ownership = handle->ownership().lock();
  if (ownership == nullptr) {
    return absl::FailedPreconditionError("the agent has shut down");
  }
  auto owned = ownership->Peek(handle->id());
  if (owned.ok() && owned->value.type->id != type.id) {
    return absl::InvalidArgumentError(
        absl::StrCat("the object is a ", ShownName(owned->value.type->name()),
                     ", not a ", ShownName(type.name())));
  }
  return owned;
}

HandlePtr OwnValue(Agent& agent, AnyValue value, Place where) {
  return agent.core()->ownership().Own(std::move(value), where.ToString());
}

CallSpec SpecFor(const HandlePtr& unmoved, MethodKey method, std::string name) {
  const HandlePtr& handle = Current(unmoved);
  CallSpec spec{.agent = {},
                .to = "nobody",
                .method = method,
                .name = std::move(name),
                .object = handle,
                .result = nullptr};
  if (handle == nullptr) return spec;
  spec.agent = handle->agent();
  spec.to = Target(handle->owner(), Place());
  return spec;
}

void EncodeHandle(Encoder& encoder, const HandlePtr& handle) {
  encoder.PutHandle(Current(handle));
}

HandlePtr DecodeHandle(Decoder& decoder, const ValueType& type) {
  HandlePtr handle = decoder.GetHandle();
  if (handle != nullptr && handle->identity().type != type.id) {
    decoder.Fail(absl::InvalidArgumentError(
        absl::StrCat("an RRef of another type than ", ShownName(type.name()))));
    return nullptr;
  }
  return handle;
}

HandlePtr NewResultHandle(const std::weak_ptr<AgentCore>& agent,
                          const Target& to, const ValueType& type) {
  auto core = agent.lock();
  HandlePtr handle;
  if (core == nullptr) {
    handle = std::make_shared<Handle>(
        agent, std::weak_ptr<Ownership>(),
        Handle::Identity{{}, {0, 1}, Unknown(to), type.id},
        Handle::State::kUnknown);
  } else if (auto owner = core->Find(to); !owner.ok()) {
    handle = core->ownership().NewGrant(Unknown(to), type.id);
  } else if (owner->name == core->self().name) {
    handle = core->ownership().OwnPending(type, to.where().ToString());
  } else {
    handle = core->ownership().NewGrant(*owner, type.id);
  }
  handle->set_creation(Promise<void>(CompletionsOf(agent)));
  return handle;
}

OnReply FinishHandle(HandlePtr handle) {
  return [handle](absl::Status status, Decoder*) {
    if (auto ownership = handle->ownership().lock(); ownership == nullptr) {
      handle->FailWith(status);
    } else if (handle->is_owner()) {
      // Has an effect only if the call failed before its handler ran; else the
      // handler has finished the creation already.
      if (!status.ok()) ownership->FinishCreation(handle->id(), status);
    } else if (status.ok()) {
      ownership->ConfirmGrant(handle);
    } else {
      ownership->FailGrant(handle, status);
    }
    handle->creation().Set(std::move(status));
  };
}

Future<void> CreationOf(const HandlePtr& handle) {
  return handle->creation().future();
}

}  // namespace internal
}  // namespace baton::rpc
