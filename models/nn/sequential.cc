// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/sequential.h"

namespace baton::nn {

Variable Sequential::Forward(const Variable& x) {
  Variable y = x;
  for (const auto& named : children()) y = (*named.value)(y);
  return y;
}

}  // namespace baton::nn
