// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/random.h"
#include "models/nn/module.h"

namespace baton::nn {

struct LinearOptions {
  bool bias = true;
};

// x [..., in] -> [..., out]. Parameters "weight" [out, in] and, unless turned
// off, "bias" [out]. Thread-compatible.
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, Generator& generator,
         const LinearOptions& options = {});
  Variable Forward(const Variable& x) override;

  const Variable& weight() const { return weight_; }
  const Variable* bias() const { return bias_; }  // null if there is none

 private:
  Variable& weight_;
  Variable* bias_ = nullptr;
};

}  // namespace baton::nn
