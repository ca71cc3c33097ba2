// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/shape.h"
#include "core/random.h"
#include "models/nn/batch_norm.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "models/nn/loss_module.h"
#include "models/nn/module.h"
#include "rpc/exports.h"

// Modules with several inputs and outputs, for tests of pipelines.
namespace baton::testing {

// Returns tanh(p W + b) for each of its outputs, where p is the product of its
// inputs [rows, kWidth], normalised by a batch norm if `norm` is set. Integer
// inputs count as numbers. If `passes_last` is set, the last input is one more
// output. Each input is used once, along a chain of products that begins with
// the first.
class MixStage final : public nn::Module {
 public:
  static constexpr int64_t kWidth = 5;
  struct Options {
    int32_t inputs = 1;
    int32_t outputs = 1;
    bool passes_last = false;
    bool ignores_last = false;
    bool norm = false;
    uint64_t seed = 0;
    static constexpr auto Fields() {
      return std::tuple{&Options::inputs,      &Options::outputs,
                        &Options::passes_last, &Options::ignores_last,
                        &Options::norm,        &Options::seed};
    }
  };
  explicit MixStage(const Options& options)
      : options_(options), generator_(options.seed) {
    for (int32_t i = 0; i < options.outputs; ++i)
      heads_.push_back(&MakeModule<nn::Linear>(absl::StrCat("head", i), kWidth,
                                               kWidth, generator_));
    if (options.norm) norm_ = &MakeModule<nn::BatchNorm2d>("norm", kWidth);
  }
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override {
    Require(values.size() == static_cast<size_t>(options_.inputs), "mix",
            "takes ", options_.inputs, " values, got ", values.size());
    Variable product = Floating(values.front()) * 1.0;
    for (size_t i = 1; i + options_.ignores_last < values.size(); ++i)
      product = product * Floating(values[i]);
    if (norm_ != nullptr) {
      const Shape shape = product.shape();
      product = autograd::Reshape(norm_->Forward(autograd::Reshape(
                                      product, {product.dim(0), kWidth, 1, 1})),
                                  shape);
    }
    std::vector<Variable> outputs;
    for (nn::Linear* head : heads_)
      outputs.push_back(autograd::Tanh(head->Forward(product)));
    if (options_.passes_last) outputs.push_back(values.back());
    return outputs;
  }
  using Exports = rpc::Methods<rpc::kConstructor<const Options&>>;

 private:
  static Variable Floating(const Variable& x) {
    return IsFloating(x.dtype()) ? x : Variable(x.tensor().To(DType::kF32));
  }
  const Options options_;
  Generator generator_;
  std::vector<nn::Linear*> heads_;
  nn::BatchNorm2d* norm_ = nullptr;
};

// The cross-entropy of the first output plus `share`, a parameter, times the
// mean square of the second.
class TwoHeadLoss final : public nn::LossModule {
 public:
  explicit TwoHeadLoss(double share)
      : share_(RegisterParameter("share", Tensor::Full({1}, share))) {}
  Variable LossOfAll(const std::vector<Variable>& outputs,
                     const Tensor& targets) override {
    Require(outputs.size() == 2, "two_heads", "takes two outputs, got ",
            outputs.size());
    return nn::CrossEntropy(outputs[0], targets) +
           share_ *
               nn::MseLoss(outputs[1], Tensor::Zeros(outputs[1].shape(),
                                                     {.device = device()}));
  }
  using Exports = rpc::Methods<rpc::kConstructor<double>>;

 private:
  Variable& share_;
};

}  // namespace baton::testing
