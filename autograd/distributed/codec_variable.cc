// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/codec_variable.h"

#include <utility>

#include "autograd/distributed/edges.h"
#include "autograd/functions/cast.h"

namespace baton::rpc {

void Codec<Variable>::Encode(Encoder& encoder, const Variable& value) {
  auto* crossing = dynamic_cast<dist::SendCrossing*>(encoder.crossing());
  int32_t position = crossing == nullptr ? -1 : crossing->Add(value);
  encoder.Put(position);
  encoder.PutTensor(value.defined() ? value.tensor() : Tensor());
}

Variable Codec<Variable>::Decode(Decoder& decoder) {
  auto position = decoder.Get<int32_t>();
  Tensor tensor = decoder.GetTensor();
  if (!decoder.ok() || !tensor.defined()) return Variable();
  const auto cast = [to = decoder.dtype()](const Variable& x) {
    return to.has_value() && IsFloating(x.dtype()) ? autograd::Cast(x, *to) : x;
  };
  if (position < 0) return cast(Variable(std::move(tensor)));
  auto* crossing = dynamic_cast<dist::ReceiveCrossing*>(decoder.crossing());
  if (crossing == nullptr) {
    decoder.Fail(absl::InvalidArgumentError(
        "a value that requires grad came without its context"));
    return Variable();
  }
  absl::StatusOr<Variable> value = crossing->Take(std::move(tensor), position);
  if (value.ok()) return cast(*value);
  decoder.Fail(value.status());
  return Variable();
}

}  // namespace baton::rpc
