// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "models/distributed/server/key_layout.h"
#include "models/nn/module.h"

namespace baton::examples {

// The state of a model after a step. Its tensors are never written again.
struct ModelState {
  int64_t step = 0;
  bool over = false;               // this was the last step
  Tensor parameters{}, buffers{};  // flat, as FlatModel packs them
  static constexpr auto Fields() {
    using S = ModelState;
    return std::tuple{&S::step, &S::over, &S::parameters, &S::buffers};
  }
};

// A trainer's gradients for the last state that it got.
struct GradientReport {
  Tensor gradients{}, buffers{};  // flat, as those of a state
  double loss = 0;
  static constexpr auto Fields() {
    using R = GradientReport;
    return std::tuple{&R::gradients, &R::buffers, &R::loss};
  }
};

// Copies a model's parameters, gradients and floating buffers from and to flat
// tensors, which travel faster than many small ones. Models of one kind have
// the same layout. Does not own the model. Thread-compatible.
class FlatModel {
 public:
  static absl::StatusOr<FlatModel> Make(const nn::Module& model);

  ModelState State() const;
  // Every parameter must have a gradient. `empty` makes the flat tensors, [n].
  GradientReport Report(double loss,
                        absl::FunctionRef<Tensor(const Shape&)> empty) const;
  void CopyFrom(const ModelState& state) const;

 private:
  FlatModel(const nn::Module& model, dist::KeyLayout parameters,
            dist::KeyLayout buffers)
      : model_(&model),
        parameters_(std::move(parameters)),
        buffers_(std::move(buffers)) {}

  const nn::Module* model_;
  dist::KeyLayout parameters_, buffers_;  // each of one shard
};

}  // namespace baton::examples
