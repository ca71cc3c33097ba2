// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/codec_options.h"

namespace baton::rpc {
namespace {

// Calls `each` with every field: one list for both directions.
template <typename Options, typename Each>
void ForEachAdamField(Options& o, const Each& each) {
  each(o.lr), each(o.beta1), each(o.beta2), each(o.eps);
  each(o.weight_decay), each(o.amsgrad), each(o.maximize);
}

template <typename Options, typename Each>
void ForEachField(Options& o, const Each& each) {
  if constexpr (requires { o.nesterov; }) {
    each(o.lr), each(o.momentum), each(o.dampening), each(o.weight_decay);
    each(o.nesterov), each(o.maximize);
  } else {
    ForEachAdamField(o, each);
  }
}

template <typename Options>
void Put(Encoder& encoder, const Options& options) {
  ForEachField(options, [&](const auto& field) { encoder.Put(field); });
}

template <typename Options>
Options Get(Decoder& decoder) {
  Options options;
  ForEachField(options,
               [&]<typename F>(F& field) { field = decoder.Get<F>(); });
  return options;
}

}  // namespace

#define BATON_OPTIONS_CODEC(type)                                 \
  void Codec<type>::Encode(Encoder& encoder, const type& value) { \
    Put(encoder, value);                                          \
  }                                                               \
  type Codec<type>::Decode(Decoder& decoder) { return Get<type>(decoder); }
BATON_OPTIONS_CODEC(optim::SgdOptions)
BATON_OPTIONS_CODEC(optim::AdamOptions)
BATON_OPTIONS_CODEC(optim::AdamWOptions)
#undef BATON_OPTIONS_CODEC

}  // namespace baton::rpc
