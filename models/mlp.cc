// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/mlp.h"

#include "autograd/functions/shape.h"
#include "core/status.h"
#include "models/nn/activation.h"
#include "models/nn/dropout.h"
#include "models/nn/linear.h"

namespace baton::models {

Mlp::Mlp(const MlpOptions& options, Generator& generator)
    : layers_(MakeModule<nn::Sequential>("layers")) {
  const auto& widths = options.widths;
  Require(widths.size() >= 2, "mlp", "expected two widths or more, got ",
          widths.size());
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    layers_.Emplace<nn::Linear>(widths[i], widths[i + 1], generator);
    if (i + 2 == widths.size()) break;
    layers_.Emplace<nn::ReLU>();
    if (options.dropout > 0)
      layers_.Emplace<nn::Dropout>(options.dropout,
                                   generator.seed() + generator.NextDraw());
  }
}

Variable Mlp::Forward(const Variable& x) {
  return layers_(x.tensor().rank() == 2 ? x : autograd::Flatten(x, 1));
}

}  // namespace baton::models
