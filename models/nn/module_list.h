// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "models/nn/module.h"

namespace baton::nn {

// A list of modules, named "0", "1", ..., for a forward that calls them in its
// own way; Sequential calls one after the other. M is their common type.
// Thread-compatible.
template <typename M = Module>
class ModuleList final : public Module {
 public:
  // Throws Error: a list has no order of computation.
  Variable Forward(const Variable&) override {
    Fail("module_list", "a list has no forward: call those of its modules",
         absl::StatusCode::kUnimplemented);
  }

  template <typename Child>
  Child& Add(std::shared_ptr<Child> module) {
    modules_.reserve(modules_.size() + 1);
    Child& added =
        RegisterModule(std::to_string(modules_.size()), std::move(module));
    modules_.push_back(&added);
    return added;
  }
  // Makes and adds the next module: layers.Emplace<nn::Linear>(10, 5,
  // generator).
  template <typename Child = M, typename... Args>
  Child& Emplace(Args&&... args) {
    return Add(std::make_shared<Child>(std::forward<Args>(args)...));
  }

  size_t size() const { return modules_.size(); }
  // Throws Error if the index is out of range.
  M& operator[](size_t index) const {
    Require(index < modules_.size(), "module_list", "no module ", index,
            " in a list of ", modules_.size());
    return *modules_[index];
  }
  // For range-for: pointers, in order.
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<M*> modules_;  // children()
};

}  // namespace baton::nn
