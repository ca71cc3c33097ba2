// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "autograd/variable.h"
#include "rpc/codec.h"

namespace baton::rpc {

// A Variable is sent as its tensor. In a call with a dist::Context, one that
// requires grad also leaves an edge, over which its gradient comes back; in a
// call without a context it arrives as a plain value. If the receiving object
// wants another dtype (rpc::Decoder::set_dtype), the value is cast to it, and
// its gradient is cast back.
template <>
struct Codec<Variable> {
  static void Encode(Encoder& encoder, const Variable& value);
  static Variable Decode(Decoder& decoder);
};

}  // namespace baton::rpc
