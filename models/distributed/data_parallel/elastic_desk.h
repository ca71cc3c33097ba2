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

// The group that members of an elastic run and newcomers are to make next.
// Plain data.
struct ElasticInvitation {
  std::string group;                     // its name, which no other has
  std::vector<rpc::WorkerInfo> members;  // by rank, newcomers last

  static constexpr auto Fields() {
    return std::tuple{&ElasticInvitation::group, &ElasticInvitation::members};
  }
};

// What a worker has to do with an elastic run. Plain data.
struct ElasticPart {
  enum class Kind : uint8_t {
    kNone,
    kEntering,  // wants to be in a group
    kMember,
  };
  Kind kind = Kind::kNone;
  std::string leader = {};  // a member's: who takes petitions

  static constexpr auto Fields() {
    return std::tuple{&ElasticPart::kind, &ElasticPart::leader};
  }
};

// Where a worker tells others of its part in elastic runs, and where newcomers
// ask to be let in. Thread-safe.
class ElasticDesk {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ElasticDesk(std::string self) : self_(std::move(self)) {}
  // FailedPrecondition where it is not attached (AttachElastic).
  static absl::StatusOr<std::shared_ptr<ElasticDesk>> Of(
      const rpc::Agent& agent);

  // AlreadyExists where this worker is in the run already.
  absl::Status Open(const std::string& run);
  // Petitions that are left fail.
  void Close(const std::string& run);
  // This worker is about to ask all others, who then say whether they are
  // entering: who asked here before counts no more.
  void ForgetAskers(const std::string& run);
  // Makes this worker, which is entering, a member and the leader, unless a
  // worker of a lower rank that is entering, too, has asked here: of several
  // who look for each other at a time the lowest one begins.
  bool Begin(const std::string& run, const rpc::Agent& agent);
  // It is a member now. Petitions fail unless it leads.
  void Follow(const std::string& run, const std::string& leader);

  // Those who want to be let in and are still there.
  std::vector<rpc::WorkerInfo> Petitioners(const std::string& run,
                                           const rpc::Agent& agent);
  // Until there are some; not after the deadline.
  void AwaitPetition(const std::string& run, Clock::time_point deadline);
  // Tells the newcomers that it lists.
  void Answer(const std::string& run, const ElasticInvitation& invitation);

  // From others.
  ElasticPart PartOf(const std::string& run, const rpc::WorkerInfo& asker);
  Future<ElasticInvitation> Ask(const std::string& run,
                                const rpc::WorkerInfo& asker);

 private:
  struct Petition {
    rpc::WorkerInfo worker;
    Promise<ElasticInvitation> promise;
  };
  struct Run {
    ElasticPart part;
    std::map<std::string, rpc::WorkerInfo> askers = {};  // while entering
    std::map<std::string, Petition> petitions = {};      // by name
  };
  static void Refuse(const std::map<std::string, Petition>& petitions);

  const std::string self_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);
};

// What workers call.
namespace elastic_calls {
ElasticPart PartOf(rpc::CallContext& call, const std::string& run);
Future<ElasticInvitation> Ask(rpc::CallContext& call, const std::string& run);
}  // namespace elastic_calls

}  // namespace baton::dist
