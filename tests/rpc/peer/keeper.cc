// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/peer/keeper.h"

#include <chrono>

namespace baton::testing {
namespace {

RRef<Counter>& Kept() {
  static auto* kept = new RRef<Counter>();
  return *kept;
}

}  // namespace

int Keep(RRef<Counter> counter) {
  Kept() = std::move(counter);
  return 0;
}

Future<int> UseKept() { return Kept().Async<&Counter::Get>(); }

Future<int> WaitForever() {
  static const auto* never = new Promise<int>();
  return never->future();
}

int Occupy(int milliseconds) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
  return milliseconds;
}

int Measure(Tensor tensor) { return static_cast<int>(tensor.numel()); }

void FillKeeper(rpc::Registry& registry) {
  FillCounter(registry);
  registry.AddFunction<&Keep>();
  registry.AddFunction<&UseKept>();
  registry.AddFunction<&WaitForever>();
  registry.AddFunction<&Occupy>();
  registry.AddFunction<&Measure>();
}

}  // namespace baton::testing
