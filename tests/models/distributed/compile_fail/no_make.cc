// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: the module cannot be made from afar
#include "models/distributed/join.h"

namespace baton::dist {
struct Doubled final : nn::Module {
  Variable Forward(const Variable& x) override { return x; }
  using Exports = rpc::Methods<&Doubled::Forward>;
};
void Use(const rpc::ClusterOptions& options) { (void)Join<Doubled>(options); }
}  // namespace baton::dist
