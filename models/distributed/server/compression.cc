// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/compression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/multi_tensor.h"
#include "core/ops/rows.h"

namespace baton::dist {
namespace {

using Kind = Compression::Kind;

constexpr std::array<std::pair<Kind, const char*>, 3> kKinds = {
    {{Kind::kNone, "none"}, {Kind::kBf16, "bf16"}, {Kind::kTopK, "topk"}}};

// NaN counts as largest, so that the servers see it.
float Magnitude(float x) {
  return std::isnan(x) ? std::numeric_limits<float>::infinity() : std::abs(x);
}

}  // namespace

const char* Name(Kind kind) {
  for (const auto& [known, name] : kKinds)
    if (known == kind) return name;
  return "unknown";
}

std::optional<Kind> CompressionFromName(const std::string& name) {
  for (const auto& [kind, known] : kKinds)
    if (name == known) return kind;
  return std::nullopt;
}

absl::Status Check(const Compression& compression) {
  if (compression.kind != Kind::kTopK ||
      (compression.keep > 0 && compression.keep <= 1))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("compression keeps a share of the elements above 0 and up "
                   "to 1, not ",
                   compression.keep));
}

Gradients Compressor::Compress(const Tensor& gradient) {
  if (compression_.kind == Kind::kNone) return {.dense = gradient};
  if (residual_.defined()) ops::AddIntoMany({gradient}, {residual_});
  residual_ = gradient;
  if (compression_.kind == Kind::kTopK) return TakeLargest();
  Gradients sent{.dense = residual_.To(DType::kBF16)};
  const Tensor rounded = sent.dense.To(DType::kF32);
  float* left = residual_.data<float>();
  std::transform(
      left, left + residual_.numel(), rounded.data<float>(), left,
      [](float x, float y) { return std::isfinite(x - y) ? x - y : 0.0F; });
  return sent;
}

Gradients Compressor::TakeLargest() {
  float* left = residual_.data<float>();
  const int64_t all = residual_.numel();
  const auto count = std::min<int64_t>(
      all,
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(
                               compression_.keep * static_cast<double>(all)))));
  if (all == 0) return {.dense = residual_};
  std::vector<float> magnitudes(static_cast<size_t>(all));
  std::transform(left, left + all, magnitudes.begin(), Magnitude);
  const auto last = magnitudes.begin() + (count - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end(),
                   std::greater<>());
  const float least = *last;
  // Of the elements that equal the smallest selected one, the first are sent.
  int64_t equal = std::count(magnitudes.begin(), last + 1, least);
  Gradients sent{.dense = Tensor::Empty({count}),
                 .index = Tensor::Empty({count}, {.dtype = DType::kI64})};
  float* value = sent.dense.data<float>();
  int64_t* index = sent.index.data<int64_t>();
  for (int64_t i = 0; i < all; ++i) {
    const float magnitude = Magnitude(left[i]);
    if (magnitude < least || (magnitude == least && equal-- <= 0)) continue;
    *value++ = std::exchange(left[i], 0.0F);
    *index++ = i;
  }
  return sent;
}

Tensor Expand(const Gradients& gradients, int64_t elements, Device device) {
  const Tensor given = gradients.dense.To(device);
  if (!gradients.index.defined()) return given.To(DType::kF32);
  Tensor all = Tensor::Zeros({elements}, {.device = device});
  ops::AddRowsInto(all.Reshape({elements, 1}),
                   {.index = gradients.index.To(device),
                    .values = given.Reshape({given.numel(), 1})});
  return all;
}

}  // namespace baton::dist
