// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: kConstructor lists parameters that no public
// constructor
#include "rpc/registry.h"

namespace baton::testing {
struct Seat {
  explicit Seat(int number) : number(number) {}
  using Exports = rpc::Methods<rpc::kConstructor<int, int>>;
  int number;
};
void Use(rpc::Registry& registry) { registry.Add<Seat>(); }
}  // namespace baton::testing
