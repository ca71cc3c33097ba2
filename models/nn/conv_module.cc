// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/conv_module.h"

#include "core/status.h"
#include "models/nn/init.h"

namespace baton::nn {
namespace {

Tensor EmptyConvWeight(const char* op, int64_t rows, int64_t columns,
                       int64_t groups, const Dims& kernel) {
  Require(rows > 0 && columns > 0 && groups > 0 && rows % groups == 0 &&
              columns % groups == 0,
          op, "channels ", columns, " and ", rows, " cannot be in ", groups,
          " groups");
  Dims dims = {rows, columns / groups};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return Tensor::Empty(Shape(std::move(dims)));
}

}  // namespace

ConvModule::ConvModule(const Sizes& sizes, ConvInit init, Generator& generator)
    : weight_(RegisterParameter(
          "weight", EmptyConvWeight(sizes.op, sizes.rows, sizes.columns,
                                    sizes.groups, sizes.kernel))) {
  if (sizes.bias > 0)
    bias_ = &RegisterParameter("bias", Tensor::Empty({sizes.bias}));
  const Tensor bias = bias_ ? bias_->tensor() : Tensor();
  if (init == ConvInit::kKaimingFanOut) {
    KaimingNormal(weight_.tensor(), {.fan = Fan::kOut}, generator);
    if (bias.defined()) bias.Fill(0);
  } else {
    DefaultInit(weight_.tensor(), bias, generator);
  }
}

}  // namespace baton::nn
