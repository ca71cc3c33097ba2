// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/agent.h"
#include "rpc/call_context.h"

namespace baton::dist {

// The next group that the members of an elastic run and newcomers will make.
// Plain data.
struct ElasticInvitation {
  std::string group;                     // unique
  std::vector<rpc::WorkerInfo> members;  // by rank, newcomers last

  static constexpr auto Fields() {
    return std::tuple{&ElasticInvitation::group, &ElasticInvitation::members};
  }
};

// A worker's part in an elastic run. Plain data.
struct ElasticPart {
  enum class Kind : uint8_t {
    kNone,
    kEntering,  // wants to join a group
    kMember,
  };
  Kind kind = Kind::kNone;
  std::string leader = {};  // of a member: the worker that takes join requests

  static constexpr auto Fields() {
    return std::tuple{&ElasticPart::kind, &ElasticPart::leader};
  }
};

// Tells other workers this worker's part in elastic runs, and takes newcomers'
// join requests. Thread-safe.
class ElasticHandlers {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ElasticHandlers(std::string self) : self_(std::move(self)) {}
  // Returns FailedPrecondition if none is attached (AttachElastic).
  static absl::StatusOr<std::shared_ptr<ElasticHandlers>> Of(
      const rpc::Agent& agent);

  // Returns AlreadyExists if this worker is already in the run.
  absl::Status Open(const std::string& run);
  // Closes the run; open join requests fail.
  void Close(const std::string& run);
  // Forgets the workers that have asked here. Call this before this worker asks
  // all others for their part: those that are entering, too, will then tell it
  // so.
  void ForgetAskers(const std::string& run);
  // Makes this worker, which is entering, a member and the leader. Returns
  // false if a worker of a lower rank that is also entering has asked here: of
  // several workers that look for each other, the one with the lowest rank
  // begins.
  bool Begin(const std::string& run, const rpc::Agent& agent);
  // Makes this worker a member. Join requests fail unless it is the leader.
  void Follow(const std::string& run, const std::string& leader);

  // Returns the workers that have asked to join and are still there.
  std::vector<rpc::WorkerInfo> Joiners(const std::string& run,
                                       const rpc::Agent& agent);
  // Waits until there is a join request, at most until the deadline.
  void AwaitJoinRequest(const std::string& run, Clock::time_point deadline);
  // Sends the invitation to the newcomers that it lists.
  void Answer(const std::string& run, const ElasticInvitation& invitation);

  // These are called for other workers.
  ElasticPart PartOf(const std::string& run, const rpc::WorkerInfo& asker);
  Future<ElasticInvitation> Ask(const std::string& run,
                                const rpc::WorkerInfo& asker);

 private:
  struct JoinRequest {
    rpc::WorkerInfo worker;
    Promise<ElasticInvitation> promise;
  };
  struct Run {
    ElasticPart part;
    std::map<std::string, rpc::WorkerInfo> askers = {};     // while entering
    std::map<std::string, JoinRequest> join_requests = {};  // by name
  };
  static void Refuse(const std::map<std::string, JoinRequest>& requests);

  const std::string self_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);
};

// The functions that other workers call.
namespace elastic_calls {
ElasticPart PartOf(rpc::CallContext& call, const std::string& run);
Future<ElasticInvitation> Ask(rpc::CallContext& call, const std::string& run);
}  // namespace elastic_calls

}  // namespace baton::dist
