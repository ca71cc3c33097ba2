// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/indexing.h"

#include "autograd/autocast.h"
#include "autograd/functions/function.h"
#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/rows.h"
#include "core/status.h"

namespace baton::autograd {

Variable Cat(const std::vector<Variable>& given, int axis) {
  const std::vector<Variable> parts = AsWide(given);
  const Tensor y = ops::Cat(TensorsOf(parts), axis);
  std::vector<int64_t> sizes;
  for (const Variable& part : parts) sizes.push_back(part.dim(axis));
  return RecordJoint("cat", y, {}, parts, [sizes, axis](const Backprop& p) {
    Tensors grads(sizes.size());
    int64_t start = 0;
    for (size_t i = 0; i < sizes.size(); start += sizes[i++]) {
      if (p.needs(static_cast<int>(i)))
        grads[i] = p.dy().Slice(axis, start, start + sizes[i]);
    }
    return grads;
  });
}

Variable Stack(const std::vector<Variable>& given, int axis) {
  const std::vector<Variable> parts = AsWide(given);
  const size_t count = parts.size();
  return RecordJoint("stack", ops::Stack(TensorsOf(parts), axis), {}, parts,
                     [count, axis](const Backprop& p) {
                       Tensors grads(count);
                       for (size_t i = 0; i < count; ++i) {
                         if (p.needs(static_cast<int>(i)))
                           grads[i] =
                               p.dy().Select(axis, static_cast<int64_t>(i));
                       }
                       return grads;
                     });
}

Variable Gather(const Variable& x, int axis, const Tensor& index) {
  const Shape& shape = x.shape();
  return Record("gather", ops::Gather(x.tensor(), axis, index), {index},
                {{x, [shape, axis](const Backprop& p) {
                    const Tensor zeros = Tensor::Zeros(
                        shape,
                        {.dtype = p.dy().dtype(), .device = p.dy().device()});
                    return ops::ScatterAdd(zeros, axis, p.saved(0), p.dy());
                  }}});
}

Variable ScatterAdd(const Variable& given_x, int axis, const Tensor& index,
                    const Variable& given_source) {
  const Variable x = AsWide(given_x, given_source),
                 source = AsWide(given_source, given_x);
  Require(index.shape() == source.shape(), "scatter_add", "expected index ",
          index.shape().ToString(), " and source ", source.shape().ToString(),
          " of one shape");
  return Record("scatter_add",
                ops::ScatterAdd(x.tensor(), axis, index, source.tensor()),
                {index},
                {{x, [](const Backprop& p) { return p.dy(); }},
                 {source, [axis](const Backprop& p) {
                    return ops::Gather(p.dy(), axis, p.saved(0));
                  }}});
}

Variable Embedding(const Variable& table, const Tensor& index,
                   const EmbeddingOptions& options) {
  const Tensor y = ops::Embedding(table.tensor(), index);
  const int64_t rows = table.dim(0);
  int64_t padding = -1;
  if (options.padding) {
    padding = *options.padding < 0 ? *options.padding + rows : *options.padding;
    Require(padding >= 0 && padding < rows, "embedding", "padding row ",
            *options.padding, " is not among ", rows);
  }
  const auto gradient = [rows, padding](const Backprop& p) {
    return ops::EmbeddingBackward(p.dy(), p.saved(0), rows, padding);
  };
  RowsFormula of_rows = nullptr;
  if (options.sparse) {
    of_rows = [rows, padding](const Backprop& p) {
      Tensor numbers = p.saved(0).Flatten();
      const Tensor values = p.dy().Reshape({numbers.numel(), p.dy().dim(-1)});
      if (padding >= 0) {
        const Tensor row = Tensor::Full(
            {1}, static_cast<double>(padding),
            {.dtype = numbers.dtype(), .device = numbers.device()});
        numbers = ops::MaskedFill(numbers, ops::Equal(numbers, row), -1);
      }
      return Gradient(ops::Coalesce({numbers, values}, rows), rows);
    };
  }
  return Record("embedding", y, {index}, {{table, gradient, nullptr, of_rows}});
}

}  // namespace baton::autograd
