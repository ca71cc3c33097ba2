// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/cast.h"

#include "autograd/functions/function.h"

namespace baton::autograd {

Variable Cast(const Variable& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const DType from = x.dtype();
  return Record("cast", x.tensor().To(dtype), {},
                {{x, [from](const Backprop& p) { return p.dy().To(from); }}});
}

}  // namespace baton::autograd
