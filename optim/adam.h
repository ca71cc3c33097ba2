// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "core/ops/optimizer.h"
#include "optim/optimizer.h"

namespace baton::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

// Adam (Kingma, Ba, 2015), with the AMSGrad variant. Weight decay is added to
// the gradient. State: "exp_avg", "exp_avg_sq" and, with AMSGrad,
// "max_exp_avg_sq". Thread-compatible.
class Adam : public Optimizer {
 public:
  // Throws Error on options out of range.
  Adam(std::vector<Variable> parameters, const AdamOptions& options);

 protected:
  Adam(const char* op, std::vector<Variable> parameters,
       const ops::AdamOptions& options);
  void Apply(const std::vector<Update>& updates) override;

 private:
  ops::AdamOptions options_;  // but for lr, which may change
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

// Adam whose weight decay shrinks the parameter itself (Loshchilov, Hutter,
// 2019). Thread-compatible.
class AdamW final : public Adam {
 public:
  AdamW(std::vector<Variable> parameters, const AdamWOptions& options);
};

}  // namespace baton::optim
