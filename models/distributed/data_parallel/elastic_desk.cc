// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/elastic_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

using Kind = ElasticPart::Kind;

bool IsThere(const rpc::Agent& agent, const rpc::WorkerInfo& worker) {
  const auto found = agent.Find(worker.name);
  return found.ok() && found->incarnation == worker.incarnation;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ElasticDesk>> ElasticDesk::Of(
    const rpc::Agent& agent) {
  auto desk = agent.service<ElasticDesk>();
  if (desk == nullptr) {
    return absl::FailedPreconditionError(
        "this worker is in no elastic runs: AttachElastic was not called");
  }
  return desk;
}

absl::Status ElasticDesk::Open(const std::string& run) {
  MutexLock lock(mutex_);
  if (runs_.emplace(run, Run{{Kind::kEntering}}).second)
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("this worker is in the elastic run ", run, " already"));
}

void ElasticDesk::Refuse(const std::map<std::string, Petition>& petitions) {
  for (const auto& [name, petition] : petitions) {
    petition.promise.Set(
        absl::UnavailableError("another worker leads the elastic run"));
  }
}

void ElasticDesk::Close(const std::string& run) {
  std::map<std::string, Petition> left;
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    left.swap(found->second.petitions);
    runs_.erase(found);
  }
  Refuse(left);
}

void ElasticDesk::ForgetAskers(const std::string& run) {
  MutexLock lock(mutex_);
  runs_.at(run).askers.clear();
}

bool ElasticDesk::Begin(const std::string& run, const rpc::Agent& agent) {
  MutexLock lock(mutex_);
  Run& here = runs_.at(run);
  for (const auto& [name, asker] : here.askers) {
    if (asker.rank < agent.self().rank && IsThere(agent, asker)) return false;
  }
  here.part = {Kind::kMember, agent.self().name};
  return true;
}

void ElasticDesk::Follow(const std::string& run, const std::string& leader) {
  std::map<std::string, Petition> left;
  {
    MutexLock lock(mutex_);
    Run& here = runs_.at(run);
    here.part = {Kind::kMember, leader};
    here.askers.clear();
    if (leader != self_) left.swap(here.petitions);
  }
  Refuse(left);
}

std::vector<rpc::WorkerInfo> ElasticDesk::Petitioners(const std::string& run,
                                                      const rpc::Agent& agent) {
  std::vector<rpc::WorkerInfo> workers;
  MutexLock lock(mutex_);
  std::erase_if(runs_.at(run).petitions, [&](const auto& petition) {
    return !IsThere(agent, petition.second.worker);
  });
  for (const auto& [name, petition] : runs_.at(run).petitions)
    workers.push_back(petition.worker);
  return workers;
}

void ElasticDesk::AwaitPetition(const std::string& run,
                                Clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (runs_.at(run).petitions.empty() &&
         changed_.WaitUntil(mutex_, deadline)) {
  }
}

void ElasticDesk::Answer(const std::string& run,
                         const ElasticInvitation& invitation) {
  std::vector<Promise<ElasticInvitation>> promises;
  {
    MutexLock lock(mutex_);
    auto& petitions = runs_.at(run).petitions;
    for (const rpc::WorkerInfo& member : invitation.members) {
      const auto petition = petitions.extract(member.name);
      if (!petition.empty()) promises.push_back(petition.mapped().promise);
    }
  }
  for (const auto& promise : promises) promise.Set(invitation);
}

ElasticPart ElasticDesk::PartOf(const std::string& run,
                                const rpc::WorkerInfo& asker) {
  MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return {};
  if (found->second.part.kind == Kind::kEntering)
    found->second.askers.insert_or_assign(asker.name, asker);
  return found->second.part;
}

Future<ElasticInvitation> ElasticDesk::Ask(const std::string& run,
                                           const rpc::WorkerInfo& asker) {
  const Promise<ElasticInvitation> promise;
  std::map<std::string, Petition> refused = {{"", {asker, promise}}};
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    // A worker that is entering may become the leader; if not, the asker tries
    // others.
    if (found != runs_.end() && (found->second.part.kind == Kind::kEntering ||
                                 found->second.part.leader == self_)) {
      found->second.petitions.insert_or_assign(asker.name,
                                               Petition{asker, promise});
      refused.clear();
      changed_.NotifyAll();
    }
  }
  Refuse(refused);
  return promise.future();
}

namespace elastic_calls {

ElasticPart PartOf(rpc::CallContext& call, const std::string& run) {
  const auto desk = ElasticDesk::Of(call.agent());
  return desk.ok() ? (*desk)->PartOf(run, call.caller()) : ElasticPart();
}

Future<ElasticInvitation> Ask(rpc::CallContext& call, const std::string& run) {
  const auto desk = ElasticDesk::Of(call.agent());
  if (!desk.ok()) return ReadyFuture<ElasticInvitation>(desk.status());
  return (*desk)->Ask(run, call.caller());
}

}  // namespace elastic_calls

}  // namespace baton::dist
