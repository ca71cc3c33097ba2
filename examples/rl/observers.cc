// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/observers.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace baton::examples {
namespace {

void Append(const Played& played, Played& all) {
  all.episodes.insert(all.episodes.end(), played.episodes.begin(),
                      played.episodes.end());
  all.latencies_us.insert(all.latencies_us.end(), played.latencies_us.begin(),
                          played.latencies_us.end());
}

}  // namespace

Observers::Observers(rpc::Agent& agent, std::shared_ptr<PolicyAgent> policy,
                     int64_t most)
    : policy_(std::move(policy)),
      participants_(
          agent,
          [&agent, rref = RRef<PolicyAgent>::Make(agent, policy_)](
              const std::string& worker) {
            return rpc::Create<Observer>(agent, worker, rref);
          },
          most) {}

absl::StatusOr<Played> Observers::PlayAll(
    const std::function<PlayOrder(size_t i, size_t all)>& order) {
  ASSIGN_OR_RETURN(const auto present,
                   participants_.Muster(Participants<Observer>::Wait::kForOne));
  policy_->Expect(static_cast<int64_t>(present.size()));
  ASSIGN_OR_RETURN(
      const std::vector<std::optional<Played>> played,
      participants_.CallAll<Played>(present, [&](const RRef<Observer>& observer,
                                                 size_t i) {
        const auto call = observer.Async<&Observer::Play>(
            rpc::CallOptions{.timeout = kNoLimit}, order(i, present.size()));
        call.OnReady([policy = policy_](const absl::StatusOr<Played>&) {
          policy->ExpectOneLess();
        });
        return call;
      }));
  played_ = 0;
  Played together;
  for (const std::optional<Played>& each : played) {
    if (!each.has_value()) continue;
    ++played_;
    Append(*each, together);
  }
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
