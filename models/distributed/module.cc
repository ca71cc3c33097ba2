// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/module.h"

namespace baton::dist {

void Place(nn::Module& module, const Placement& placement,
           const rpc::Compute& declared) {
  const DType dtype = placement.dtype.value_or(declared.dtype);
  // Weights that are to be f32 by default may be f64.
  if (placement.dtype.has_value() || IsHalf(dtype))
    module.LowerPrecision(dtype);
  module.To(placement.device.value_or(declared.device));
}

}  // namespace baton::dist
