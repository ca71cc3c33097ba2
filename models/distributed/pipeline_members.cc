// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline_members.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/spares.h"

namespace baton::dist {
namespace {

// How long a member may take to answer before it is asked again, and how long
// to wait for news.
constexpr std::chrono::milliseconds kAnswer{1000};
constexpr std::chrono::milliseconds kNoNews{50};

bool IsSame(const rpc::WorkerInfo& a, const rpc::WorkerInfo& b) {
  return a.name == b.name && a.incarnation == b.incarnation;
}

}  // namespace

std::shared_ptr<MemberNews> MemberNews::Of(rpc::Agent& agent) {
  auto news = std::make_shared<MemberNews>();
  agent.WatchMembers([weak = std::weak_ptr(news)](const auto& event) {
    if (const auto self = weak.lock()) self->Hear(event);
  });
  return news;
}

void MemberNews::Hear(const rpc::MemberEvent& event) {
  std::optional<Promise<void>> heard;
  {
    const MutexLock lock(mutex_);
    if (event.kind != rpc::MemberEvent::Kind::kJoined)
      broke_.try_emplace(event.worker.name, Clock::now());
    heard = std::exchange(next_, Promise<void>());
  }
  heard->Set(absl::OkStatus());
}

Future<void> MemberNews::Next() const {
  const MutexLock lock(mutex_);
  return next_.future();
}

std::optional<MemberNews::Clock::time_point> MemberNews::Broke(
    const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = broke_.find(name);
  if (found == broke_.end()) return std::nullopt;
  return found->second;
}

void MemberNews::Forget() {
  const MutexLock lock(mutex_);
  broke_.clear();
}

PipelineMembers::PipelineMembers(rpc::Agent& agent,
                                 const std::vector<rpc::WorkerInfo>& workers)
    : agent_(agent), news_(MemberNews::Of(agent)) {
  for (const rpc::WorkerInfo& worker : workers) {
    members_.push_back({.worker = worker, .has_modules = true});
    names_.push_back(worker.name);
  }
}

void PipelineMembers::AddNames(const std::vector<std::string>& names) {
  names_.insert(names_.end(), names.begin(), names.end());
}

absl::Status PipelineMembers::MakeStores(const StateClaim& claim) {
  if (members_.size() == 1 && !here_.valid())
    here_ = RRef<StateStore>::Make(agent_, std::make_shared<StateStore>());
  for (Member& member : members_) {
    if (member.store.valid()) continue;
    ASSIGN_OR_RETURN(
        member.store,
        rpc::Create<StateStore>(agent_, member.worker, claim).Await(kNoLimit));
  }
  return absl::OkStatus();
}

bool PipelineMembers::IsThere(const rpc::WorkerInfo& worker) const {
  return absl::c_any_of(agent_.workers(), [&](const rpc::WorkerInfo& there) {
    return IsSame(there, worker);
  });
}

std::vector<rpc::WorkerInfo> PipelineMembers::Others() const {
  std::vector<rpc::WorkerInfo> others = agent_.workers();
  std::erase_if(others, [&](const rpc::WorkerInfo& worker) {
    return IsSame(worker, agent_.self());
  });
  return others;
}

template <typename T>
absl::StatusOr<std::vector<T>> PipelineMembers::AskEach(
    const std::vector<rpc::WorkerInfo>& workers,
    const std::function<Future<T>(const rpc::WorkerInfo&)>& ask,
    Clock::time_point deadline) const {
  std::vector<Future<T>> asked;
  for (const rpc::WorkerInfo& worker : workers) asked.push_back(ask(worker));
  std::vector<T> answers;
  for (size_t i = 0; i < workers.size(); ++i) {
    absl::StatusOr<T> answer = asked[i].Await(kNoLimit);
    // A worker that was killed refuses connections before it counts as lost.
    while (absl::IsUnavailable(answer.status()) && IsThere(workers[i]) &&
           Clock::now() < deadline) {
      news_->Next().Await(kNoNews).IgnoreError();
      if (IsThere(workers[i])) answer = ask(workers[i]).Await(kNoLimit);
    }
    if (!answer.ok() && IsThere(workers[i])) return answer.status();
    if (answer.ok()) answers.push_back(*std::move(answer));
  }
  return answers;
}

absl::StatusOr<uint64_t> PipelineMembers::ClaimedEpoch(
    const std::string& pipeline, Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> epochs,
                   AskEach<uint64_t>(
                       Others(),
                       [&](const rpc::WorkerInfo& worker) {
                         return agent_.Async<&dist::ClaimedEpoch>(worker,
                                                                  pipeline);
                       },
                       deadline));
  return epochs.empty() ? 0 : *absl::c_max_element(epochs);
}

absl::Status PipelineMembers::TakeUp(const StateClaim& claim,
                                     Clock::time_point deadline) {
  return TakeUpFrom(Others(), claim, deadline);
}

absl::Status PipelineMembers::TakeUpAgain(const StateClaim& claim,
                                          Clock::time_point deadline) {
  std::vector<rpc::WorkerInfo> workers = Others();
  std::erase_if(workers, [&](const rpc::WorkerInfo& worker) {
    return !absl::c_linear_search(names_, worker.name);
  });
  return TakeUpFrom(workers, claim, deadline);
}

std::vector<rpc::WorkerInfo> PipelineMembers::GivenUp() const {
  std::vector<rpc::WorkerInfo> given_up;
  for (const std::string& name : std::set(names_.begin(), names_.end())) {
    const auto listed = agent_.Find(name);
    if (listed.ok() && !IsThere(*listed)) given_up.push_back(*listed);
  }
  return given_up;
}

bool PipelineMembers::AwaitGivenUp(const std::string& pipeline,
                                   Clock::time_point deadline) const {
  const rpc::CallOptions options{.timeout = kAnswer};
  while (Clock::now() < deadline) {
    const Future<void> news = news_->Next();
    std::vector<Future<uint64_t>> asked;
    for (const rpc::WorkerInfo& worker : GivenUp()) {
      asked.push_back(
          agent_.Async<&dist::ClaimedEpoch>(worker, options, pipeline));
    }
    if (asked.empty()) return false;
    if (absl::c_any_of(asked, [](const Future<uint64_t>& answer) {
          return answer.Await(kNoLimit).ok();
        }))
      return true;
    news.Await(kNoNews).IgnoreError();
  }
  return false;
}

absl::Status PipelineMembers::TakeUpFrom(
    const std::vector<rpc::WorkerInfo>& workers, const StateClaim& claim,
    Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const auto stores, AskEach<RRef<StateStore>>(
                                          workers,
                                          [&](const rpc::WorkerInfo& worker) {
                                            return rpc::Create<StateStore>(
                                                agent_, worker, claim);
                                          },
                                          deadline));
  answers_.clear();
  for (const RRef<StateStore>& store : stores) {
    ASSIGN_OR_RETURN(
        auto kept,
        store.Async<&StateStore::Fence>(claim.epoch).Await(kNoLimit));
    if (!kept.empty() && !absl::c_linear_search(names_, store.owner().name))
      names_.push_back(store.owner().name);
    answers_.push_back({store, std::move(kept)});
    for (Member& member : members_) {
      if (!IsSame(member.worker, store.owner())) continue;
      // A lost store shows that the modules at that worker are lost, too.
      if (IsGone(member)) member.has_modules = false;
      member.store = store;
    }
  }
  return MakeStores(claim);
}

const RRef<StateStore>& PipelineMembers::BuddyOf(size_t place) const {
  if (members_.size() == 1) return here_;
  return members_[(place + 1) % members_.size()].store;
}

// A worker that was given up and came back has lost what was made there.
bool PipelineMembers::IsGone(const Member& member) const {
  if (member.store.valid() && !member.store.confirmed()) return true;
  return !IsThere(member.worker);
}

absl::StatusOr<std::vector<size_t>> PipelineMembers::FindLost(
    uint64_t epoch, Clock::time_point deadline) {
  for (;;) {
    const Future<void> news = news_->Next();
    std::vector<std::optional<Future<std::vector<KeptState>>>> asked;
    for (const Member& member : members_) {
      if (!member.store.valid() || IsGone(member)) {
        asked.emplace_back();
        continue;
      }
      asked.emplace_back(member.store.Async<&StateStore::Fence>(
          rpc::CallOptions{.timeout = kAnswer}, epoch));
    }
    answers_.clear();
    if (here_.valid()) {
      ASSIGN_OR_RETURN(const auto here, here_.LocalValue());
      ASSIGN_OR_RETURN(auto kept, here->Fence(epoch));
      answers_.push_back({here_, std::move(kept)});
    }
    std::vector<size_t> lost;
    absl::Status unknown;
    for (size_t place = 0; place < members_.size(); ++place) {
      Member& member = members_[place];
      absl::Status why;
      if (asked[place].has_value()) {
        auto kept = asked[place]->Await(kNoLimit);
        why = kept.status();
        if (absl::IsPermissionDenied(why)) return why;
        if (kept.ok()) answers_.push_back({member.store, *std::move(kept)});
      }
      if (IsGone(member)) {
        lost.push_back(place);
      } else {
        unknown.Update(why);
      }
    }
    if (unknown.ok()) return lost;
    if (Clock::now() >= deadline) return unknown;
    news.Await(kNoNews).IgnoreError();
  }
}

std::optional<rpc::WorkerInfo> PipelineMembers::SuccessorOf(
    const Member& lost) const {
  std::vector<rpc::WorkerInfo> there = agent_.workers();
  std::erase_if(there, [&](const rpc::WorkerInfo& worker) {
    return absl::c_any_of(members_, [&](const Member& member) {
      return &member != &lost && member.worker.name == worker.name;
    });
  });
  const auto find = [&](const auto& is) -> std::optional<rpc::WorkerInfo> {
    const auto found = absl::c_find_if(there, is);
    if (found == there.end()) return std::nullopt;
    return *found;
  };
  using Worker = const rpc::WorkerInfo&;
  auto next = find([&](Worker w) { return w.name == lost.worker.name; });
  if (!next) next = find(rpc::IsSpare);
  if (!next)
    next =
        find([&](Worker w) { return absl::c_linear_search(names_, w.name); });
  return next;
}

absl::Status PipelineMembers::Replace(const std::vector<size_t>& lost,
                                      Clock::time_point deadline) {
  for (const size_t place : lost) {
    Member& member = members_[place];
    for (;;) {
      const Future<void> news = news_->Next();
      if (const auto next = SuccessorOf(member)) {
        member = {.worker = *next};
        names_.push_back(next->name);
        break;
      }
      if (Clock::now() >= deadline) {
        return absl::UnavailableError(
            absl::StrCat("no worker takes the place of ", member.worker.name,
                         ", which is lost: start it again, or have a spare"));
      }
      news.Await(kNoNews).IgnoreError();
    }
  }
  return absl::OkStatus();
}

std::optional<PipelineMembers::Kept> PipelineMembers::NewestKept(
    int64_t most) const {
  std::vector<std::map<int64_t, RRef<StateStore>>> of_place(members_.size());
  for (const Answer& answer : answers_) {
    for (const KeptState& kept : answer.kept) {
      const auto place = static_cast<size_t>(kept.place);
      if (kept.step > most || place >= of_place.size()) continue;
      // Prefer the store at the worker that will load the state.
      if (answer.store == members_[place].store) {
        of_place[place][kept.step] = answer.store;
      } else {
        of_place[place].try_emplace(kept.step, answer.store);
      }
    }
  }
  for (auto at = of_place[0].rbegin(); at != of_place[0].rend(); ++at) {
    Kept kept{.step = at->first};
    for (const auto& steps : of_place) {
      const auto found = steps.find(at->first);
      if (found == steps.end()) break;
      kept.stores.push_back(found->second);
    }
    if (kept.stores.size() == of_place.size()) return kept;
  }
  return std::nullopt;
}

}  // namespace baton::dist
