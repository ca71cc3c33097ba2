// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Must not compile, and say: the class is no nn::Module
#include <memory>

#include "models/distributed/module.h"

namespace baton::dist {
struct Tally {
  static std::unique_ptr<Tally> Make() { return std::make_unique<Tally>(); }
  using Exports = rpc::Methods<&Tally::Make>;
};
void Use(rpc::Registry& registry) { RegisterModule<Tally>(registry); }
}  // namespace baton::dist
