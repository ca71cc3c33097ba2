// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/scan.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "core/ops/scan.h"

namespace baton::autograd {

Variable CumSum(const Variable& given, int axis) {
  const Variable x = InF32(given);
  return Record("cumsum", ops::CumSum(x.tensor(), axis), {},
                {{x, [axis](const Backprop& p) {
                    return ops::CumSum(p.dy(), axis, true);
                  }}});
}

}  // namespace baton::autograd
