// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/transfer.h"

#include "autograd/functions/function.h"

namespace baton::autograd {

Variable To(const Variable& x, Device device) {
  const Device from = x.tensor().device();
  if (from == device) return x;
  return Record("to", x.tensor().To(device), {},
                {{x, [from](const Backprop& p) { return p.dy().To(from); }}});
}

}  // namespace baton::autograd
