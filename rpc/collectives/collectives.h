// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/agent.h"
#include "rpc/call_context.h"
#include "rpc/collectives/flight_recorder.h"
#include "rpc/collectives/mailbox.h"
#include "rpc/collectives/meeting.h"
#include "rpc/collectives/message_queues.h"
#include "rpc/registry.h"

namespace baton::rpc {

class ProcessGroup;

// Registers the functions that members of a group call on each other. The
// registry of every worker that is to be in a group needs this.
void RegisterCollectives(Registry& registry);

// Attaches a Collectives to an agent. Call it before the agent serves calls:
//   options.on_start = rpc::AttachCollectives;
void AttachCollectives(Agent& agent);

// The groups that a worker is in, and the meetings that it hosts. Thread-safe.
class Collectives {
 public:
  // FailedPrecondition if AttachCollectives was not called for this agent.
  static absl::StatusOr<std::shared_ptr<Collectives>> Of(const Agent& agent);

  GroupMeetings& meetings() { return meetings_; }
  void Add(uint64_t ticket, std::weak_ptr<ProcessGroup> group);
  void Remove(uint64_t ticket);
  // NotFound if the group is gone or never existed.
  absl::StatusOr<std::shared_ptr<ProcessGroup>> Find(uint64_t ticket) const;
  void OnMember(const MemberEvent& event);

 private:
  GroupMeetings meetings_;
  mutable Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<ProcessGroup>> groups_
      ABSL_GUARDED_BY(mutex_);
};

// The functions that workers call on each other. `ticket` names the called
// worker's membership in a group.
namespace collective_calls {
Future<GroupRoster> Join(CallContext& call, const GroupRequest& request);
Future<void> TakeChunk(CallContext& call, uint64_t ticket,
                       const ChunkMessage& chunk);
Future<void> TakeSent(CallContext& call, uint64_t ticket,
                      const TaggedTensor& sent);
absl::Status BreakGroup(CallContext& call, uint64_t ticket,
                        const absl::Status& why);
absl::StatusOr<std::vector<FlightRecord>> FlightOf(CallContext& call,
                                                   uint64_t ticket);
}  // namespace collective_calls

}  // namespace baton::rpc
