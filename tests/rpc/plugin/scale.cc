// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/plugin/scale.h"

#include "core/ops/arithmetic.h"
#include "rpc/plugin.h"

namespace baton::plugin {

absl::StatusOr<std::unique_ptr<Scale>> Scale::Make(float factor) {
  if (factor == 0) return absl::InvalidArgumentError("factor 0");
  return std::make_unique<Scale>(factor);
}

// An op that the program itself may never call: it must export it all the same.
Tensor Scale::Apply(const Tensor& x) const {
  return ops::MulScalar(x, factor_);
}

void AddScale(rpc::Registry& registry) { registry.Add<Scale>(); }

}  // namespace baton::plugin

BATON_PLUGIN("scale", baton::plugin::AddScale);
