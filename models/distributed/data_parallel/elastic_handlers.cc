// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/elastic_handlers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

using Kind = ElasticPart::Kind;

}  // namespace

absl::StatusOr<std::shared_ptr<ElasticHandlers>> ElasticHandlers::Of(
    const rpc::Agent& agent) {
  auto handlers = agent.service<ElasticHandlers>();
  if (handlers == nullptr) {
    return absl::FailedPreconditionError(
        "this worker is in no elastic runs: AttachElastic was not called");
  }
  return handlers;
}

absl::Status ElasticHandlers::Open(const std::string& run) {
  MutexLock lock(mutex_);
  if (runs_.emplace(run, Run{{Kind::kEntering}}).second)
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("this worker is in the elastic run ", run, " already"));
}

void ElasticHandlers::Refuse(
    const std::map<std::string, JoinRequest>& requests) {
  for (const auto& [name, request] : requests) {
    request.promise.Set(
        absl::UnavailableError("another worker leads the elastic run"));
  }
}

void ElasticHandlers::Close(const std::string& run) {
  std::map<std::string, JoinRequest> left;
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    left.swap(found->second.join_requests);
    runs_.erase(found);
  }
  Refuse(left);
}

void ElasticHandlers::ForgetAskers(const std::string& run) {
  MutexLock lock(mutex_);
  runs_.at(run).askers.clear();
}

bool ElasticHandlers::Begin(const std::string& run, const rpc::Agent& agent) {
  MutexLock lock(mutex_);
  Run& here = runs_.at(run);
  for (const auto& [name, asker] : here.askers) {
    if (asker.rank < agent.self().rank && agent.Find(asker).ok()) return false;
  }
  here.part = {Kind::kMember, agent.self().name};
  return true;
}

void ElasticHandlers::Follow(const std::string& run,
                             const std::string& leader) {
  std::map<std::string, JoinRequest> left;
  {
    MutexLock lock(mutex_);
    Run& here = runs_.at(run);
    here.part = {Kind::kMember, leader};
    here.askers.clear();
    if (leader != self_) left.swap(here.join_requests);
  }
  Refuse(left);
}

std::vector<rpc::WorkerInfo> ElasticHandlers::Joiners(const std::string& run,
                                                      const rpc::Agent& agent) {
  std::vector<rpc::WorkerInfo> workers;
  MutexLock lock(mutex_);
  std::erase_if(runs_.at(run).join_requests, [&](const auto& request) {
    return !agent.Find(request.second.worker).ok();
  });
  for (const auto& [name, request] : runs_.at(run).join_requests)
    workers.push_back(request.worker);
  return workers;
}

void ElasticHandlers::AwaitJoinRequest(const std::string& run,
                                       Clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (runs_.at(run).join_requests.empty() &&
         changed_.WaitUntil(mutex_, deadline)) {
  }
}

void ElasticHandlers::Answer(const std::string& run,
                             const ElasticInvitation& invitation) {
  std::vector<Promise<ElasticInvitation>> promises;
  {
    MutexLock lock(mutex_);
    auto& requests = runs_.at(run).join_requests;
    for (const rpc::WorkerInfo& member : invitation.members) {
      const auto request = requests.extract(member.name);
      if (!request.empty()) promises.push_back(request.mapped().promise);
    }
  }
  for (const auto& promise : promises) promise.Set(invitation);
}

ElasticPart ElasticHandlers::PartOf(const std::string& run,
                                    const rpc::WorkerInfo& asker) {
  MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return {};
  if (found->second.part.kind == Kind::kEntering)
    found->second.askers.insert_or_assign(asker.name, asker);
  return found->second.part;
}

Future<ElasticInvitation> ElasticHandlers::Ask(const std::string& run,
                                               const rpc::WorkerInfo& asker) {
  const Promise<ElasticInvitation> promise;
  std::map<std::string, JoinRequest> refused = {{"", {asker, promise}}};
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    // A worker that is entering may become the leader; if not, the asker tries
    // others.
    if (found != runs_.end() && (found->second.part.kind == Kind::kEntering ||
                                 found->second.part.leader == self_)) {
      found->second.join_requests.insert_or_assign(asker.name,
                                                   JoinRequest{asker, promise});
      refused.clear();
      changed_.NotifyAll();
    }
  }
  Refuse(refused);
  return promise.future();
}

namespace elastic_calls {

ElasticPart PartOf(rpc::CallContext& call, const std::string& run) {
  const auto handlers = ElasticHandlers::Of(call.agent());
  return handlers.ok() ? (*handlers)->PartOf(run, call.caller())
                       : ElasticPart();
}

Future<ElasticInvitation> Ask(rpc::CallContext& call, const std::string& run) {
  const auto handlers = ElasticHandlers::Of(call.agent());
  if (!handlers.ok()) return ReadyFuture<ElasticInvitation>(handlers.status());
  return (*handlers)->Ask(run, call.caller());
}

}  // namespace elastic_calls

}  // namespace baton::dist
