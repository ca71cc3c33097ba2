// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/recordings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::nn {

std::string KindOf(const std::vector<Tensor>& inputs) {
  std::string kind;
  for (const Tensor& x : inputs) {
    if (!x.defined()) {
      absl::StrAppend(&kind, "undefined;");
      continue;
    }
    absl::StrAppend(&kind, Name(x.dtype()), x.shape().ToString(), "/",
                    absl::StrJoin(x.strides(), ","), " ", x.device().ToString(),
                    ";");
  }
  return kind;
}

}  // namespace baton::nn
