// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/mutex.h"
#include "core/random.h"
#include "core/tensor.h"
#include "examples/rl/cart_pole.h"
#include "models/mlp.h"
#include "optim/any.h"

namespace baton::examples {

// What an observer sees when it asks for an action.
struct Observation {
  CartPole::State state{};
  // In [0, 1): decides among the actions, so that what is played does not hang
  // on the order in which observers ask.
  float chance = 0;
  static constexpr auto Fields() {
    return std::tuple{&Observation::state, &Observation::chance};
  }
};

// All that was seen and done until it was over: each step's reward is 1.
struct Episode {
  Tensor states;   // f32 [T, CartPole::kNumbers]
  Tensor actions;  // i64 [T]
  int64_t reward() const { return actions.numel(); }
  static constexpr auto Fields() {
    return std::tuple{&Episode::states, &Episode::actions};
  }
};

struct PolicyOptions {
  std::vector<int64_t> hidden = {128};  // widths between state and actions
  optim::AnyOptions optimizer = {.kind = "adam", .lr = 0.02};
  double gamma = 0.99;  // of a reward one step later
  uint64_t seed = 1;    // of the weights
};

// A network that gives each action of CartPole its probability, and learns by
// REINFORCE (Williams, 1992) from whole episodes. The mean return of the
// episodes is the baseline. Thread-safe.
class Policy {
 public:
  explicit Policy(const PolicyOptions& options);

  // An action for each, by one forward.
  std::vector<int32_t> Choose(const std::vector<Observation>& observations);
  // One step from all of them together; its loss.
  double Learn(const std::vector<Episode>& episodes);

 private:
  const PolicyOptions options_;
  Mutex mutex_;
  Generator generator_ ABSL_GUARDED_BY(mutex_);
  models::Mlp network_ ABSL_GUARDED_BY(mutex_);
  optim::Any optimizer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::examples
