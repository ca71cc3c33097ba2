// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server_batch/flat_model.h"

#include <vector>

#include "autograd/tensors_of.h"
#include "core/status.h"
#include "models/distributed/server/options.h"

namespace baton::examples {
namespace {

using Empty = absl::FunctionRef<Tensor(const Shape&)>;

std::vector<nn::Named<Tensor>> FloatingBuffers(const nn::Module& model) {
  std::vector<nn::Named<Tensor>> buffers = model.NamedBuffers();
  std::erase_if(buffers, [](const nn::Named<Tensor>& buffer) {
    return !IsFloating(buffer.value.dtype());
  });
  return buffers;
}

std::vector<Tensor> BuffersOf(const nn::Module& model) {
  std::vector<Tensor> tensors;
  for (const nn::Named<Tensor>& buffer : FloatingBuffers(model))
    tensors.push_back(buffer.value);
  return tensors;
}

template <typename T>
absl::StatusOr<dist::KeyLayout> LayoutOf(
    const std::vector<nn::Named<T>>& tensors) {
  std::vector<dist::DenseKey> keys;
  for (const nn::Named<T>& tensor : tensors)
    keys.push_back({tensor.name, tensor.value.shape()});
  return dist::PlanKeys(std::move(keys), 1, dist::ServerOptions().part_bytes);
}

Tensor Flat(const dist::KeyLayout& layout, const std::vector<Tensor>& tensors,
            Empty empty) {
  Tensor flat = empty({layout.shard_elements.front()});
  layout.Pack(0, tensors, flat);
  return flat;
}

Tensor Anywhere(const Shape& shape) { return Tensor::Empty(shape); }

}  // namespace

absl::StatusOr<FlatModel> FlatModel::Make(const nn::Module& model) {
  ASSIGN_OR_RETURN(dist::KeyLayout parameters,
                   LayoutOf(model.NamedParameters()));
  ASSIGN_OR_RETURN(dist::KeyLayout buffers, LayoutOf(FloatingBuffers(model)));
  return FlatModel(model, std::move(parameters), std::move(buffers));
}

ModelState FlatModel::State() const {
  return {.parameters =
              Flat(parameters_, TensorsOf(model_->Parameters()), Anywhere),
          .buffers = Flat(buffers_, BuffersOf(*model_), Anywhere)};
}

GradientReport FlatModel::Report(double loss, Empty empty) const {
  return {
      .gradients = Flat(parameters_, GradientsOf(model_->Parameters()), empty),
      .buffers = Flat(buffers_, BuffersOf(*model_), empty),
      .loss = loss};
}

void FlatModel::CopyFrom(const ModelState& state) const {
  parameters_.Unpack(0, state.parameters, TensorsOf(model_->Parameters()));
  buffers_.Unpack(0, state.buffers, BuffersOf(*model_));
}

}  // namespace baton::examples
