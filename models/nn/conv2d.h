// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/ops/conv.h"
#include "models/nn/conv_module.h"

namespace baton::nn {

struct Conv2dOptions {
  std::array<int64_t, 2> kernel = {3, 3};  // height, width
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  bool bias = true;
  ConvInit init = ConvInit::kDefault;
};

// x [N, in, H, W] -> [N, out, H', W']. Parameters "weight" [out, in/groups, kH,
// kW] and, unless turned off, "bias" [out]. Thread-compatible.
class Conv2d final : public ConvModule {
 public:
  Conv2d(int64_t in, int64_t out, const Conv2dOptions& options,
         Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  const ops::Conv2dOptions options_;
};

}  // namespace baton::nn
