// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/observers.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/status.h"

namespace baton::examples {
namespace {

// One that shuts down answers FailedPrecondition.
bool IsLoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsFailedPrecondition(status);
}

void Append(const Played& played, Played& all) {
  all.episodes.insert(all.episodes.end(), played.episodes.begin(),
                      played.episodes.end());
  all.latencies_us.insert(all.latencies_us.end(), played.latencies_us.begin(),
                          played.latencies_us.end());
}

}  // namespace

Observers::Observers(rpc::Agent& agent, std::shared_ptr<PolicyAgent> policy,
                     int64_t most)
    : agent_(agent),
      policy_(std::move(policy)),
      rref_(RRef<PolicyAgent>::Make(agent, policy_)),
      most_(most) {}

bool Observers::Has(const rpc::WorkerInfo& worker) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) {
                       return member.worker.incarnation == worker.incarnation;
                     });
}

absl::Status Observers::Muster() {
  const auto is_made = [](const Member& member) { return member.made.ready(); };
  for (const rpc::WorkerInfo& worker : agent_.workers()) {
    if (worker.name == agent_.self().name || Has(worker)) continue;
    const auto count = static_cast<int64_t>(members_.size());
    if (most_ > 0 && count == most_) break;
    members_.push_back({.worker = worker,
                        .made = rpc::Create<Observer>(agent_, worker, rref_)});
  }
  if (std::none_of(members_.begin(), members_.end(), is_made)) {
    for (const Member& member : members_)
      (void)member.made.Await(kNoLimit);  // ends by --rpc_timeout
  }
  absl::Status wrong;
  std::erase_if(members_, [&](const Member& member) {
    if (!is_made(member)) return false;
    const absl::Status made = member.made.Await().status();
    if (!made.ok() && !IsLoss(made)) wrong.Update(made);
    return !made.ok();
  });
  if (members_.empty() && wrong.ok()) {
    return absl::UnavailableError(
        "no observer is there: give baton-run more --workers");
  }
  return wrong;
}

absl::StatusOr<Played> Observers::PlayAll(
    const std::function<PlayOrder(size_t i, size_t all)>& order) {
  RETURN_IF_ERROR(Muster());
  std::vector<Member> asked;
  for (const Member& member : members_)
    if (member.made.ready()) asked.push_back(member);
  policy_->Expect(static_cast<int64_t>(asked.size()));
  std::vector<Future<Played>> calls;
  for (size_t i = 0; i < asked.size(); ++i) {
    calls.push_back(asked[i].made.Await()->Async<&Observer::Play>(
        rpc::CallOptions{.timeout = kNoLimit}, order(i, asked.size())));
    calls.back().OnReady([policy = policy_](const absl::StatusOr<Played>&) {
      policy->ExpectOneLess();
    });
  }
  Played together;
  absl::Status wrong;
  played_ = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const absl::StatusOr<Played> played = calls[i].Await(kNoLimit);
    if (played.ok()) {
      ++played_;
      Append(*played, together);
    } else if (IsLoss(played.status())) {
      ++lost_;
      std::erase_if(members_, [&](const Member& member) {
        return member.worker == asked[i].worker;
      });
    } else {
      wrong.Update(played.status());
    }
  }
  if (!wrong.ok()) return wrong;
  return together;
}

absl::StatusOr<Played> Observers::Play(uint64_t seed, int64_t first,
                                       int64_t episodes) {
  const auto share = [&](size_t i, size_t all) {
    return episodes * static_cast<int64_t>(i) / static_cast<int64_t>(all);
  };
  return PlayAll([&](size_t i, size_t all) {
    return PlayOrder{.seed = seed,
                     .first_episode = first + share(i, all),
                     .episodes = share(i + 1, all) - share(i, all)};
  });
}

absl::StatusOr<Played> Observers::Ask(uint64_t seed, int64_t requests) {
  return PlayAll([&](size_t i, size_t) {
    return PlayOrder{.seed = seed + i, .requests = requests};
  });
}

}  // namespace baton::examples
