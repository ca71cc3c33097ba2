// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/pool.h"

#include "autograd/functions/function.h"

namespace baton::autograd {

Variable MaxPool2d(const Variable& x, const ops::Pool2dOptions& options) {
  const Shape& shape = x.shape();
  const ops::MaxPool2dResult result = ops::MaxPool2d(x.tensor(), options);
  return Record("max_pool2d", result.y, {result.workspace},
                {{x, [shape, options](const Backprop& p) {
                    return ops::MaxPool2dBackward(p.dy(), p.saved(0), shape,
                                                  options);
                  }}});
}

Variable AvgPool2d(const Variable& x, const ops::Pool2dOptions& options) {
  const Shape& shape = x.shape();
  return Record("avg_pool2d", ops::AvgPool2d(x.tensor(), options), {},
                {{x, [shape, options](const Backprop& p) {
                    return ops::AvgPool2dBackward(p.dy(), shape, options);
                  }}});
}

Variable AdaptiveAvgPool2d(const Variable& x, int64_t height, int64_t width) {
  return Record("adaptive_avg_pool2d",
                ops::AdaptiveAvgPool2d(x.tensor(), height, width), {x.tensor()},
                {{x, [](const Backprop& p) {
                    return ops::AdaptiveAvgPool2dBackward(p.dy(), p.saved(0));
                  }}});
}

}  // namespace baton::autograd
