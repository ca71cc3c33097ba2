// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/rnn/word_model.h"

#include "autograd/functions/loss.h"
#include "autograd/functions/shape.h"

namespace baton::examples {

using Part = WordModelOptions::Part;

std::unique_ptr<WordEmbedding> WordEmbedding::Make(
    const WordModelOptions& options) {
  return std::make_unique<WordEmbedding>(options);
}

WordEmbedding::WordEmbedding(const WordModelOptions& options)
    : generator_(options.SeedOf(Part::kEmbedding)),
      table_(MakeModule<nn::Embedding>("table", options.vocabulary,
                                       options.width, generator_)),
      dropout_(
          MakeModule<nn::Dropout>("dropout", options.dropout,
                                  options.SeedOf(Part::kEmbeddingDropout))) {}

Variable WordEmbedding::Forward(const Variable& words) {
  return dropout_(table_(words));
}

std::unique_ptr<WordDecoder> WordDecoder::Make(
    const WordModelOptions& options) {
  return std::make_unique<WordDecoder>(options);
}

WordDecoder::WordDecoder(const WordModelOptions& options)
    : generator_(options.SeedOf(Part::kDecoder)),
      dropout_(MakeModule<nn::Dropout>("dropout", options.dropout,
                                       options.SeedOf(Part::kDecoderDropout))),
      linear_(MakeModule<nn::Linear>("linear", options.width,
                                     options.vocabulary, generator_)) {}

Variable WordDecoder::Forward(const Variable& x) {
  return linear_(autograd::Flatten(dropout_(x), 0, 1));
}

Variable WordDecoder::Loss(const Variable& x, const Tensor& targets) {
  return autograd::CrossEntropy(Forward(x), targets.Flatten());
}

}  // namespace baton::examples
