// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/nn/module.h"

namespace baton::nn {

// Runs modules one after the other; they are named "0", "1", ... unless a name
// is given. Thread-compatible.
class Sequential final : public Module {
 public:
  Sequential() = default;
  Variable Forward(const Variable& x) override;

  template <typename M>
  M& Add(std::shared_ptr<M> module) {
    return Add(std::to_string(children().size()), std::move(module));
  }
  template <typename M>
  M& Add(const std::string& name, std::shared_ptr<M> module) {
    return RegisterModule(name, std::move(module));
  }
  // Makes and adds the next module: layers.Emplace<nn::Linear>(10, 5,
  // generator).
  template <typename M, typename... Args>
  M& Emplace(Args&&... args) {
    return Add(std::make_shared<M>(std::forward<Args>(args)...));
  }
};

}  // namespace baton::nn
