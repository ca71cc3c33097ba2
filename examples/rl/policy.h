// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "core/random.h"
#include "core/safetensors.h"
#include "core/tensor.h"
#include "examples/rl/cart_pole.h"
#include "models/mlp.h"
#include "optim/any.h"

namespace baton::examples {

// What an observer sees when it asks for an action.
struct Observation {
  CartPole::State state{};
  // In [0, 1): decides between the actions, so that an episode does not depend
  // on the order of the observers' requests.
  float chance = 0;
  static constexpr auto Fields() {
    return std::tuple{&Observation::state, &Observation::chance};
  }
};

// The observations and actions of an episode; the reward of each step is 1.
struct Episode {
  Tensor states;   // f32 [T, CartPole::kNumbers]
  Tensor actions;  // i64 [T]
  int64_t reward() const { return actions.numel(); }
  static constexpr auto Fields() {
    return std::tuple{&Episode::states, &Episode::actions};
  }
};

struct PolicyOptions {
  std::vector<int64_t> hidden = {128};  // layers between state and actions
  optim::AnyOptions optimizer = {.kind = "adam", .lr = 0.02};
  double gamma = 0.99;  // discount per step
  uint64_t seed = 1;    // for the weights
};

// A network that returns a probability for each action of CartPole. It learns
// from whole episodes by REINFORCE (Williams, 1992), with their mean return as
// the baseline. Thread-safe.
class Policy {
 public:
  explicit Policy(const PolicyOptions& options);

  // Chooses an action for each observation, with one forward.
  std::vector<int32_t> Choose(const std::vector<Observation>& observations);
  // Takes one optimizer step on all episodes together; returns the loss.
  double Learn(const std::vector<Episode>& episodes);

  // The weights and the optimizer's state, in copies. ImportState returns
  // InvalidArgument if they are not those of such a policy.
  NamedTensors ExportState();
  absl::Status ImportState(const NamedTensors& state);

 private:
  const PolicyOptions options_;
  Mutex mutex_;
  Generator generator_ ABSL_GUARDED_BY(mutex_);
  models::Mlp network_ ABSL_GUARDED_BY(mutex_);
  optim::Any optimizer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::examples
