// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>

#include "core/ops/conv_transpose.h"
#include "models/nn/conv_module.h"

namespace baton::nn {

struct ConvTranspose2dOptions {
  std::array<int64_t, 2> kernel = {3, 3};  // height, width
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> output_padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  bool bias = true;
};

// x [N, in, H, W] -> [N, out, H', W'], see core/ops/conv_transpose.h.
// Parameters "weight" [in, out/groups, kH, kW] and, unless turned off, "bias"
// [out]. Thread-compatible.
class ConvTranspose2d final : public ConvModule {
 public:
  ConvTranspose2d(int64_t in, int64_t out,
                  const ConvTranspose2dOptions& options, Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  const ops::ConvTranspose2dOptions options_;
};

}  // namespace baton::nn
