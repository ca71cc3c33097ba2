// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/transformer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/cast.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/shape.h"
#include "core/status.h"
#include "models/transformer_block.h"
#include "models/units.h"

namespace baton::models {
namespace {

constexpr char kModel[] = "Transformer";
constexpr char kEmbedding[] = "embedding", kHead[] = "head";
constexpr char kBlocks[] = "blocks";

// Bounds the work of a worker, because options may come from a peer.
constexpr int64_t kMostLayers = 10'000, kMostOfOthers = 1 << 24;

absl::Status CheckOptions(const TransformerOptions& o) {
  const int64_t others[] = {o.vocabulary, o.context, o.width, o.heads};
  const auto [least, most] = std::minmax_element(others, others + 4);
  if (*least < 1 || *most > kMostOfOthers || o.layers < 1 ||
      o.layers > kMostLayers)
    return absl::InvalidArgumentError(absl::StrCat(
        kModel, ": layers must be 1 to ", kMostLayers,
        ", vocabulary, context, width and heads 1 to ", kMostOfOthers));
  if (o.width % o.heads != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        kModel, ": ", o.heads, " heads do not divide a width of ", o.width));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TransformerUnits(
    const TransformerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::vector<std::string> units = {kEmbedding};
  for (int64_t i = 0; i < options.layers; ++i)
    units.push_back(absl::StrCat(kBlocks, ".", i));
  units.push_back(kHead);
  return units;
}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Make(
    const TransformerOptions& options) {
  return MakeStage(options, {}, 0);
}

absl::StatusOr<std::vector<std::string>> Transformer::StageUnits(
    const TransformerOptions& options, const std::vector<std::string>& cuts,
    int index) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   TransformerUnits(options));
  return UnitsOfStage(kModel, all, cuts, index);
}

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::MakeStage(
    const TransformerOptions& options, const std::vector<std::string>& cuts,
    int index) {
  ASSIGN_OR_RETURN(std::vector<std::string> own,
                   StageUnits(options, cuts, index));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<Transformer>> {
    return std::unique_ptr<Transformer>(
        new Transformer(options, std::move(own)));
  });
}

Transformer::Transformer(const TransformerOptions& options,
                         std::vector<std::string> units)
    : options_(options), units_(std::move(units)) {
  for (const std::string& unit : units_) {
    if (unit == kEmbedding) {
      AddEmbedding();
    } else if (unit == kHead) {
      AddHead();
    } else {
      AddBlock(unit);
    }
  }
}

void Transformer::AddEmbedding() {
  Generator of_tokens(UnitSeed(options_.seed, "tokens"));
  tokens_ = &MakeModule<nn::Embedding>("tokens", options_.vocabulary,
                                       options_.width, of_tokens);
  FillNormal(tokens_->weight().tensor(), 0, kTransformerStddev, of_tokens);
  Generator generator(UnitSeed(options_.seed, kEmbedding));
  positions_ = &MakeModule<nn::Embedding>("positions", options_.context,
                                          options_.width, generator);
  FillNormal(positions_->weight().tensor(), 0, kTransformerStddev, generator);
}

void Transformer::AddBlock(const std::string& unit) {
  Generator generator(UnitSeed(options_.seed, unit));
  if (blocks_ == nullptr) blocks_ = &MakeModule<nn::Sequential>(kBlocks);
  const TransformerBlockOptions block = {.width = options_.width,
                                         .heads = options_.heads,
                                         .layers = options_.layers};
  blocks_->Add(unit.substr(unit.find('.') + 1),
               std::make_shared<TransformerBlock>(block, generator));
}

void Transformer::AddHead() {
  norm_ = &MakeModule<nn::LayerNorm>("norm", Shape({options_.width}));
  if (options_.tied) return;
  Generator generator(UnitSeed(options_.seed, kHead));
  head_ = &MakeModule<nn::Linear>("head", options_.width, options_.vocabulary,
                                  generator, nn::LinearOptions{.bias = false});
  FillNormal(head_->weight().tensor(), 0, kTransformerStddev, generator);
}

Variable Transformer::Embed(const Variable& ids) {
  Require(ids.shape().rank() == 2 && ids.dtype() == DType::kI64, "transformer",
          "expected tokens i64 [N, T], got ", ids.tensor().ToString());
  const int64_t length = ids.dim(1);
  Require(length <= options_.context, "transformer", "a text of ", length,
          " tokens is longer than the context of ", options_.context);
  Variable positions = positions_->weight();
  if (length < options_.context)
    positions = autograd::Slice(positions, 0, 0, length);
  return (*tokens_)(ids) + positions;
}

Variable Transformer::Forward(const Variable& x) {
  const std::vector<Variable> outputs = ForwardAll({x});
  Require(outputs.size() == 1, "transformer",
          "the stage of a tied embedding gives its weight, too: call "
          "ForwardAll");
  return outputs.front();
}

std::vector<Variable> Transformer::ForwardAll(
    const std::vector<Variable>& values) {
  const bool embeds = tokens_ != nullptr;
  const bool has_head = norm_ != nullptr;
  const bool takes_weight = options_.tied && !embeds;
  Require(values.size() == 1 || (values.size() == 2 && takes_weight),
          "transformer", "units ", units_.front(), " to ", units_.back(),
          " take ", takes_weight ? "1 or 2 values" : "1 value", ", got ",
          values.size());
  Variable y = embeds ? Embed(values[0]) : values[0];
  if (blocks_ != nullptr) y = (*blocks_)(y);
  std::optional<Variable> weight;
  if (options_.tied && embeds) weight = tokens_->weight();
  if (takes_weight && values.size() == 2) weight = values[1];
  if (head_ != nullptr) weight = head_->weight();
  if (!has_head)
    return weight ? std::vector<Variable>{y, *weight} : std::vector{y};
  Require(weight.has_value(), "transformer",
          "the head of a tied model that is cut takes the weight of the tokens "
          "as a second value");
  const Variable logits = autograd::Linear((*norm_)(y), *weight);
  // Log-softmax keeps its argument's dtype, and bf16 has too few digits for it.
  return {IsHalf(logits.dtype()) ? autograd::Cast(logits, DType::kF32)
                                 : logits};
}

}  // namespace baton::models
