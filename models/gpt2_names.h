// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "models/nn/module.h"

namespace baton::models {

// Converts the state of a Transformer to the names of Hugging Face's
// GPT2LMHeadModel, and back: "blocks.0.linear1.weight" becomes
// "transformer.h.0.mlp.c_fc.weight", transposed. The model's configuration
// there must have activation_function "gelu", and tie_word_embeddings equal to
// TransformerOptions::tied. Returns InvalidArgument for a tensor that such a
// model does not have. Results may share memory with `state`.
absl::StatusOr<nn::StateMap> ToGpt2(const nn::StateMap& state);
// Converts back. Also accepts names without "transformer."; ignores the masks
// of older files, and a head's weight that is the embedding.
absl::StatusOr<nn::StateMap> FromGpt2(const nn::StateMap& state);

}  // namespace baton::models
