// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "rpc/exports.h"

namespace baton::plugin {

// A class that a plug-in brings. Stateless but for its factor.
class Scale {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  static absl::StatusOr<std::unique_ptr<Scale>> Make(float factor);
  Tensor Apply(const Tensor& x) const;
  using Exports = rpc::Methods<&Scale::Make, &Scale::Apply>;

 private:
  const float factor_;
};

}  // namespace baton::plugin
