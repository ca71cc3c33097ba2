// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "models/nn/module.h"

namespace baton::models {

// The state of a Transformer as Hugging Face's GPT2LMHeadModel has it, and
// back: "blocks.0.linear1.weight" as "transformer.h.0.mlp.c_fc.weight",
// transposed. Its configuration there has activation_function "gelu", and
// tie_word_embeddings as TransformerOptions::tied. InvalidArgument for a tensor
// that such a model does not have. Results may share memory with `state`.
absl::StatusOr<nn::StateMap> ToGpt2(const nn::StateMap& state);
// Takes names without "transformer.", too, and leaves out the masks of older
// files, and a head's weight that is the embedding.
absl::StatusOr<nn::StateMap> FromGpt2(const nn::StateMap& state);

}  // namespace baton::models
