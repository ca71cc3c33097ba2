// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/functions/conv.h"
#include "models/nn/conv_module.h"

namespace baton::nn {

struct Conv1dOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  ConvInit init = ConvInit::kDefault;
};

// x [N, in, L] -> [N, out, L']. Parameters "weight" [out, in/groups, kernel]
// and, unless turned off, "bias" [out]. Thread-compatible.
class Conv1d final : public ConvModule {
 public:
  Conv1d(int64_t in, int64_t out, const Conv1dOptions& options,
         Generator& generator);
  Variable Forward(const Variable& x) override;

 private:
  const autograd::Conv1dOptions options_;
};

}  // namespace baton::nn
