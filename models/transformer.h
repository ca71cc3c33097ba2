// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "models/nn/embedding.h"
#include "models/nn/layer_norm.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"
#include "models/nn/sequential.h"

namespace baton::models {

struct TransformerOptions {
  int64_t vocabulary = 256;  // tokens are 0 .. vocabulary - 1
  int64_t context = 128;     // the maximum length of a text, in tokens
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;  // must divide width
  bool tied = true;   // the head's weight is the tokens' embedding
  uint64_t seed = 0;  // of the initial weights
  // All options, since a worker that makes a part needs them.
  static constexpr auto Fields() {
    return std::tuple{
        &TransformerOptions::vocabulary, &TransformerOptions::context,
        &TransformerOptions::width,      &TransformerOptions::layers,
        &TransformerOptions::heads,      &TransformerOptions::tied,
        &TransformerOptions::seed};
  }
};

// Returns the units that a model can be cut into, in order: "embedding",
// "blocks.0", ..., "head". Returns InvalidArgument for invalid options.
absl::StatusOr<std::vector<std::string>> TransformerUnits(
    const TransformerOptions& options);

// A decoder-only language model (as GPT-2: Radford et al., 2019), or a run of
// consecutive units of one: texts i64 [N, T] to logits [N, T, vocabulary], of
// which row t sees tokens 0 .. t; between units [N, T, width]. Parameters:
//
//   embedding  "tokens.weight" [vocabulary, width],
//              "positions.weight" [context, width]
//   blocks.i   those of a TransformerBlock
//   head       "norm.weight" and "norm.bias" [width]; "head.weight"
//              [vocabulary, width] unless tied
//
// A unit's weights depend only on the seed and the unit, so the stages of a cut
// model together equal the whole one. If the model is tied and cut, the
// embedding's stage returns tokens.weight as a second value, and the head's
// stage takes it: its gradient comes back with the other one. Stages between
// them pass it on if they receive it. Logits are f32 even after LowerPrecision.
// Thread-compatible.
class Transformer : public nn::Module {
 public:
  static absl::StatusOr<std::unique_ptr<Transformer>> Make(
      const TransformerOptions& options);
  // Makes stage `index` of the cuts.size() + 1 stages; see models/units.h.
  static absl::StatusOr<std::unique_ptr<Transformer>> MakeStage(
      const TransformerOptions& options, const std::vector<std::string>& cuts,
      int index);
  // Returns the units of that stage; errors are those of MakeStage.
  static absl::StatusOr<std::vector<std::string>> StageUnits(
      const TransformerOptions& options, const std::vector<std::string>& cuts,
      int index);

  // Requires a part that takes and returns one value.
  Variable Forward(const Variable& x) override;
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

  const TransformerOptions& options() const { return options_; }
  const std::vector<std::string>& units() const { return units_; }

 protected:
  Transformer(const TransformerOptions& options,
              std::vector<std::string> units);

 private:
  void AddEmbedding();
  void AddBlock(const std::string& unit);
  void AddHead();
  Variable Embed(const Variable& ids);

  const TransformerOptions options_;
  const std::vector<std::string> units_;
  // Null if the part has none.
  nn::Embedding* tokens_ = nullptr;
  nn::Embedding* positions_ = nullptr;
  nn::Sequential* blocks_ = nullptr;
  nn::LayerNorm* norm_ = nullptr;
  nn::Linear* head_ = nullptr;  // null if tied
};

}  // namespace baton::models
