// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/sim/differentiation.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

Variable Scaled(const Variable& x, double by) {
  return autograd::MulScalar(x, by);
}

}  // namespace

void RegisterDifferentiation(rpc::Registry& registry) {
  registry.AddFunction<&Scaled>();
}

void Differentiate(rpc::Agent& agent, const std::string& first,
                   const std::string& second, const rpc::CallOptions& options) {
  dist::Context context(agent);
  const Variable x(Tensor::Ones({2}), true);
  const auto twice = agent.Async<&Scaled>(first, options, context, x, 2.0);
  const auto y = agent.Async<&Scaled>(second, options, context, twice, 3.0)
                     .Await(kNoLimit);
  World& world = World::Get();
  if (!y.ok())
    return world.Trace(absl::StrCat("forward: ", y.status().message()));
  dist::BackwardOptions backward;
  backward.timeout = options.timeout.value_or(kDefaultAwait);
  const absl::Status done = context.Backward(autograd::Sum(*y), backward);
  world.Trace(absl::StrCat("backward: ", done.ToString()));
  world.Mix(static_cast<uint64_t>(done.code()));
  if (!done.ok()) return;
  for (const float gradient : context.GradientOf(x).ToVector<float>()) {
    if (gradient == 6) continue;
    world.Fail(absl::StrCat("a gradient is ", gradient, ", and not 6"));
  }
}

}  // namespace baton::sim
