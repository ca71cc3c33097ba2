// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/autocast.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "autograd/functions/cast.h"
#include "core/graph.h"
#include "core/status.h"

namespace baton {
namespace {

// The cast of a leaf, valid while the leaf keeps these values.
struct KeptCast {
  Variable leaf;
  Tensor tensor;
  uint64_t version = 0;
  Variable cast;
};

struct AutocastState {
  std::optional<DType> dtype;
  int scopes = 0;
  // The key is the leaf, the dtype, and whether the cast was recorded.
  std::map<std::tuple<const void*, DType, bool>, KeptCast> casts;
};
thread_local AutocastState autocast;

bool MayKeep(const Variable& x) {
  return x.is_leaf() && x.requires_grad() && !Graph::IsRecording();
}

Variable CastAndKeep(const Variable& x, DType dtype) {
  KeptCast& kept =
      autocast.casts[std::make_tuple(x.id(), dtype, !NoGrad::Active())];
  const Tensor& now = x.tensor();
  const bool same = kept.cast.defined() && SameView(kept.tensor, now) &&
                    kept.tensor.storage() == now.storage() &&
                    kept.version == now.version();
  if (!same) kept = {x, now, now.version(), autograd::Cast(x, dtype)};
  return kept.cast;
}

bool IsF32(const Variable& x) {
  return x.defined() && x.dtype() == DType::kF32;
}

Variable WidenedHalf(const Variable& x) {
  return x.defined() && IsHalf(x.dtype()) ? autograd::Cast(x, DType::kF32) : x;
}

}  // namespace

AutocastScope::AutocastScope(DType dtype)
    : AutocastScope(std::optional<DType>(dtype)) {}

AutocastScope::AutocastScope(std::optional<DType> dtype)
    : former_(autocast.dtype) {
  Require(!dtype.has_value() || IsHalf(*dtype), "autocast",
          "expected bf16 or f16, got ",
          dtype.has_value() ? Name(*dtype) : "none");
  autocast.dtype = dtype;
  ++autocast.scopes;
}

AutocastScope::~AutocastScope() {
  autocast.dtype = former_;
  if (--autocast.scopes == 0) autocast.casts.clear();
}

std::optional<DType> AutocastScope::Current() { return autocast.dtype; }

namespace autograd {

Variable Lowered(const Variable& x) {
  const std::optional<DType> dtype = AutocastScope::Current();
  if (!dtype.has_value() || !x.defined() || !IsFloating(x.dtype()) ||
      x.dtype() == DType::kF64 || x.dtype() == *dtype)
    return x;
  return MayKeep(x) ? CastAndKeep(x, *dtype) : Cast(x, *dtype);
}

std::vector<Variable> Lowered(std::vector<Variable> values) {
  if (AutocastScope::Current().has_value()) {
    for (Variable& value : values) value = Lowered(value);
  }
  return values;
}

Variable InF32(const Variable& x) {
  return AutocastScope::Current().has_value() ? WidenedHalf(x) : x;
}

Variable AsWide(const Variable& x, const Variable& other) {
  return AutocastScope::Current().has_value() && IsF32(other) ? WidenedHalf(x)
                                                              : x;
}

std::vector<Variable> AsWide(std::vector<Variable> values) {
  if (AutocastScope::Current().has_value() &&
      std::any_of(values.begin(), values.end(), IsF32)) {
    for (Variable& value : values) value = WidenedHalf(value);
  }
  return values;
}

}  // namespace autograd
}  // namespace baton
