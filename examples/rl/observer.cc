// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rl/observer.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/random.h"
#include "core/tensor.h"
#include "examples/rl/cart_pole.h"

namespace baton::examples {
namespace {

// The random numbers of one episode: where it starts, and a chance for each
// step.
class Chances {
 public:
  Chances(uint64_t seed, int64_t episode) {
    Generator generator(seed);
    generator.set_state(
        {.seed = seed, .draws = static_cast<uint64_t>(episode)});
    all_ = RandUniform({CartPole::kNumbers + CartPole::kMostSteps}, 0, 1,
                       generator);
  }
  CartPole::State Start() const {
    CartPole::State start;
    for (size_t i = 0; i < start.size(); ++i) {
      start[i] = static_cast<float>(CartPole::kStart) *
                 (2 * all_.data<float>()[i] - 1);
    }
    return start;
  }
  float OfStep(int64_t step) const {
    return all_.data<float>()[CartPole::kNumbers + step];
  }

 private:
  Tensor all_;
};

// One order being played. Each answer leads to the next request, on the thread
// that delivered the answer. Confined to these threads.
class Game : public std::enable_shared_from_this<Game> {
 public:
  Game(const rpc::CallContext& call, RRef<PolicyAgent> agent,
       const PlayOrder& order)
      : call_(call),
        agent_(std::move(agent)),
        order_(order),
        episode_(order.first_episode),
        chances_(order.seed, episode_),
        world_(chances_.Start()) {}

  Future<Played> Start() {
    IsOver() ? End() : Ask();
    return promise_.future();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Ask() {
    seen_ = {.state = world_.state(),
             .chance = chances_.OfStep(world_.steps())};
    asked_ = Clock::now();
    agent_.Async<&PolicyAgent::Act>(call_, seen_)
        .OnReady(
            [self = shared_from_this()](const absl::StatusOr<int32_t>& action) {
              if (action.ok()) {
                self->OnAction(*action);
              } else {
                self->promise_.Set(action.status());
              }
            });
  }

  void OnAction(int32_t action) {
    const std::chrono::duration<float, std::micro> latency =
        Clock::now() - asked_;
    played_.latencies_us.push_back(latency.count());
    states_.insert(states_.end(), seen_.state.begin(), seen_.state.end());
    actions_.push_back(action);
    world_.Push(action);
    if (world_.over()) BeginNext();
    IsOver() ? End() : Ask();
  }

  void BeginNext() {
    if (order_.requests == 0) {
      played_.episodes.push_back(
          {.states =
               Tensor::From(states_, {world_.steps(), CartPole::kNumbers}),
           .actions = Tensor::From(actions_)});
    }
    states_.clear();
    actions_.clear();
    chances_ = Chances(order_.seed, ++episode_);
    world_ = CartPole(chances_.Start());
  }

  bool IsOver() const {
    return order_.requests > 0
               ? played_.latencies_us.size() >=
                     static_cast<size_t>(order_.requests)
               : episode_ >= order_.first_episode + order_.episodes;
  }
  void End() { promise_.Set(std::move(played_)); }

  const rpc::CallContext call_;
  const RRef<PolicyAgent> agent_;
  const PlayOrder order_;
  int64_t episode_;
  Chances chances_;
  CartPole world_;
  Observation seen_;
  Clock::time_point asked_;
  std::vector<float> states_;  // and actions of this episode
  std::vector<int64_t> actions_;
  Played played_;
  const Promise<Played> promise_;
};

}  // namespace

std::unique_ptr<Observer> Observer::Make(const RRef<PolicyAgent>& agent) {
  return std::unique_ptr<Observer>(new Observer(agent));
}

Observer::Observer(RRef<PolicyAgent> agent) : agent_(std::move(agent)) {}

Future<Played> Observer::Play(rpc::CallContext& call,
                              const PlayOrder& order) const {
  return std::make_shared<Game>(call, agent_, order)->Start();
}

void RegisterObservers(rpc::Registry& registry) {
  registry.Add<PolicyAgent>();
  registry.Add<Observer>();
}

}  // namespace baton::examples
