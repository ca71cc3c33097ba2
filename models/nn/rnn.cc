// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/rnn.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "autograd/functions/rnn.h"
#include "autograd/functions/shape.h"
#include "core/status.h"

namespace baton::nn {

RecurrentModule::RecurrentModule(ops::RnnCell cell, int64_t in, int64_t hidden,
                                 Generator& generator,
                                 const RnnOptions& options)
    : options_(options), cell_(cell) {
  Require(in > 0 && hidden > 0 && options.layers > 0,
          cell == ops::RnnCell::kLstm ? "lstm" : "gru",
          "features and layers must be positive, got ", in, " -> ", hidden,
          ", layers ", options.layers);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const auto add = [&](const std::string& name, const Shape& shape) {
    Variable& weight = RegisterParameter(name, Tensor::Empty(shape));
    FillUniform(weight.tensor(), -bound, bound, generator);
    weights_.push_back(&weight);
  };
  const int64_t directions = options.bidirectional ? 2 : 1;
  const int64_t rows = ops::GatesOf(cell) * hidden;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (int64_t d = 0; d < directions; ++d) {
      const std::string end =
          absl::StrCat("_l", layer, d == 1 ? "_reverse" : "");
      add("weight_ih" + end, {rows, layer == 0 ? in : directions * hidden});
      add("weight_hh" + end, {rows, hidden});
      if (options.bias) {
        add("bias_ih" + end, {rows});
        add("bias_hh" + end, {rows});
      } else {
        weights_.insert(weights_.end(), 2, nullptr);
      }
    }
  }
}

RecurrentModule::Output RecurrentModule::Run(const Variable& x,
                                             const RnnState& first) {
  std::vector<Variable> weights;
  for (const Variable* weight : weights_)
    weights.push_back(weight != nullptr ? *weight : Variable());
  const bool turn = options_.batch_first;
  autograd::RnnOutputs outputs = autograd::Rnn(
      turn ? autograd::Transpose(x, 0, 1) : x, first.h, first.c, weights,
      {.cell = cell_,
       .layers = options_.layers,
       .bidirectional = options_.bidirectional});
  return {turn ? autograd::Transpose(outputs.y, 0, 1) : outputs.y,
          {outputs.h, outputs.c}};
}

}  // namespace baton::nn
