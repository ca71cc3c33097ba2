// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <tuple>

#include "core/random.h"
#include "core/tensor.h"
#include "models/nn/dropout.h"
#include "models/nn/embedding.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"
#include "rpc/exports.h"

namespace baton::examples {

// The options of a language model over words. Each part draws its weights from
// a seed of its own, so they are the same wherever a part is made.
struct WordModelOptions {
  int64_t vocabulary = 0;
  int64_t width = 128;   // of the embeddings and of the LSTM
  int64_t layers = 1;    // of the LSTM
  double dropout = 0.2;  // before and after the LSTM
  uint64_t seed = 1;

  enum class Part : uint64_t {
    kEmbedding,
    kEmbeddingDropout,
    kLstm,
    kDecoder,
    kDecoderDropout,
  };
  uint64_t SeedOf(Part part) const {
    return 16 * seed + static_cast<uint64_t>(part);
  }

  static constexpr auto Fields() {
    using O = WordModelOptions;
    return std::tuple{&O::vocabulary, &O::width, &O::layers, &O::dropout,
                      &O::seed};
  }
};

// The first part of the model: maps i64 [T, N] to [T, N, width].
// Thread-compatible.
class WordEmbedding final : public nn::Module {
 public:
  static std::unique_ptr<WordEmbedding> Make(const WordModelOptions& options);
  explicit WordEmbedding(const WordModelOptions& options);
  Variable Forward(const Variable& words) override;
  using Exports = rpc::Methods<&WordEmbedding::Make, &WordEmbedding::Forward>;

 private:
  Generator generator_;
  nn::Embedding& table_;
  nn::Dropout& dropout_;
};

// The last part of the model. It computes the loss as well, because its logits
// are much larger than its input. Thread-compatible.
class WordDecoder final : public nn::Module {
 public:
  static std::unique_ptr<WordDecoder> Make(const WordModelOptions& options);
  explicit WordDecoder(const WordModelOptions& options);
  // Maps [T, N, width] to logits [T * N, vocabulary].
  Variable Forward(const Variable& x) override;
  // Returns the mean cross-entropy for targets i64 [T, N].
  Variable Loss(const Variable& x, const Tensor& targets);
  using Exports = rpc::Methods<&WordDecoder::Make, &WordDecoder::Forward,
                               &WordDecoder::Loss>;

 private:
  Generator generator_;
  nn::Dropout& dropout_;
  nn::Linear& linear_;
};

}  // namespace baton::examples
