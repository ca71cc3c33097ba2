// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/collectives.h"

#include <chrono>
#include <utility>

#include "core/status.h"
#include "rpc/collectives/process_group.h"

namespace baton::rpc {

void RegisterCollectives(Registry& registry) {
  registry.AddFunction<&collective_calls::Join>()
      .AddFunction<&collective_calls::TakeChunk>()
      .AddFunction<&collective_calls::TakeSent>()
      .AddFunction<&collective_calls::BreakGroup>()
      .AddFunction<&collective_calls::FlightOf>();
}

void AttachCollectives(Agent& agent) {
  const auto collectives = std::make_shared<Collectives>();
  agent.SetService(collectives);
  agent.WatchMembers(
      [weak = std::weak_ptr(collectives)](const MemberEvent& event) {
        if (const auto self = weak.lock()) self->OnMember(event);
      });
}

absl::StatusOr<std::shared_ptr<Collectives>> Collectives::Of(
    const Agent& agent) {
  auto collectives = agent.service<Collectives>();
  if (collectives == nullptr) {
    return absl::FailedPreconditionError(
        "this worker is in no groups: AttachCollectives was not called");
  }
  return collectives;
}

void Collectives::Add(uint64_t ticket, std::weak_ptr<ProcessGroup> group) {
  MutexLock lock(mutex_);
  groups_.emplace(ticket, std::move(group));
}

void Collectives::Remove(uint64_t ticket) {
  MutexLock lock(mutex_);
  groups_.erase(ticket);
}

absl::StatusOr<std::shared_ptr<ProcessGroup>> Collectives::Find(
    uint64_t ticket) const {
  {
    MutexLock lock(mutex_);
    const auto found = groups_.find(ticket);
    if (found != groups_.end())
      if (auto group = found->second.lock()) return group;
  }
  return absl::NotFoundError("this worker has left the group");
}

void Collectives::OnMember(const MemberEvent& event) {
  std::vector<std::shared_ptr<ProcessGroup>> groups;
  {
    MutexLock lock(mutex_);
    for (const auto& [ticket, weak] : groups_)
      if (auto group = weak.lock()) groups.push_back(std::move(group));
  }
  meetings_.OnMember(event);
  for (const auto& group : groups) group->OnMember(event);
}

namespace collective_calls {
namespace {

absl::StatusOr<std::shared_ptr<ProcessGroup>> GroupOf(CallContext& call,
                                                      uint64_t ticket) {
  ASSIGN_OR_RETURN(const auto collectives, Collectives::Of(call.agent()));
  return collectives->Find(ticket);
}

}  // namespace

Future<GroupRoster> Join(CallContext& call, const GroupRequest& request) {
  const auto collectives = Collectives::Of(call.agent());
  if (!collectives.ok()) return ReadyFuture<GroupRoster>(collectives.status());
  call.agent().timer().After(
      std::chrono::milliseconds(request.patience_ms),
      [weak = std::weak_ptr(*collectives), key = request.key,
       ticket = request.hello.ticket] {
        if (const auto self = weak.lock()) self->meetings().Expire(key, ticket);
      });
  return (*collectives)->meetings().Join(request);
}

Future<void> TakeChunk(CallContext& call, uint64_t ticket,
                       const ChunkMessage& chunk) {
  const auto group = GroupOf(call, ticket);
  if (!group.ok()) return ReadyFuture<void>(group.status());
  return (*group)->TakeChunk(chunk);
}

Future<void> TakeSent(CallContext& call, uint64_t ticket,
                      const TaggedTensor& sent) {
  const auto group = GroupOf(call, ticket);
  if (!group.ok()) return ReadyFuture<void>(group.status());
  return (*group)->TakeSent(sent);
}

absl::Status BreakGroup(CallContext& call, uint64_t ticket,
                        const absl::Status& why) {
  ASSIGN_OR_RETURN(const auto group, GroupOf(call, ticket));
  if (why.ok()) return absl::InvalidArgumentError("no reason was given");
  group->OnBroken(why);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FlightRecord>> FlightOf(CallContext& call,
                                                   uint64_t ticket) {
  ASSIGN_OR_RETURN(const auto group, GroupOf(call, ticket));
  return group->records();
}

}  // namespace collective_calls
}  // namespace baton::rpc
