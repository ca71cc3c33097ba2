// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "optim/adam.h"
#include "optim/sgd.h"
#include "rpc/codec.h"

namespace baton::dist {

// The options of an optimizer that runs elsewhere. Specialise it, and
// rpc::Codec for the options, to use one of your own.
template <typename O>
struct OptionsOf;
template <>
struct OptionsOf<optim::Sgd> {
  using Type = optim::SgdOptions;
};
template <>
struct OptionsOf<optim::Adam> {
  using Type = optim::AdamOptions;
};
template <>
struct OptionsOf<optim::AdamW> {
  using Type = optim::AdamWOptions;
};

}  // namespace baton::dist

namespace baton::rpc {

#define BATON_OPTIONS_CODEC(type)                            \
  template <>                                                \
  struct Codec<type> {                                       \
    static void Encode(Encoder& encoder, const type& value); \
    static type Decode(Decoder& decoder);                    \
  }
BATON_OPTIONS_CODEC(optim::SgdOptions);
BATON_OPTIONS_CODEC(optim::AdamOptions);
BATON_OPTIONS_CODEC(optim::AdamWOptions);
#undef BATON_OPTIONS_CODEC

}  // namespace baton::rpc
