// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/gpt2_names.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"

namespace baton::models {
namespace {

constexpr char kBase[] = "transformer.";
constexpr char kGpt2Head[] = "lm_head.weight";
constexpr char kGpt2Tokens[] = "wte.weight";

// A tensor's name in both models, and whether one matrix is the other's
// transpose: GPT-2's "Conv1D" is a linear layer whose weight is [in, out].
struct Gpt2Name {
  const char* ours;
  const char* theirs;
  bool transposed = false;
};
constexpr Gpt2Name kOfModel[] = {{"tokens.weight", kGpt2Tokens},
                                 {"positions.weight", "wpe.weight"},
                                 {"norm.weight", "ln_f.weight"},
                                 {"norm.bias", "ln_f.bias"}};
constexpr Gpt2Name kOfBlock[] = {
    {"norm1.weight", "ln_1.weight"},
    {"norm1.bias", "ln_1.bias"},
    {"self_attn.in_proj_weight", "attn.c_attn.weight", true},
    {"self_attn.in_proj_bias", "attn.c_attn.bias"},
    {"self_attn.out_proj.weight", "attn.c_proj.weight", true},
    {"self_attn.out_proj.bias", "attn.c_proj.bias"},
    {"norm2.weight", "ln_2.weight"},
    {"norm2.bias", "ln_2.bias"},
    {"linear1.weight", "mlp.c_fc.weight", true},
    {"linear1.bias", "mlp.c_fc.bias"},
    {"linear2.weight", "mlp.c_proj.weight", true},
    {"linear2.bias", "mlp.c_proj.bias"}};

using NameOf = const char* Gpt2Name::*;

const Gpt2Name* FindName(const std::string& name, NameOf from, bool of_block) {
  const auto find = [&](const auto& table) -> const Gpt2Name* {
    for (const Gpt2Name& entry : table)
      if (name == entry.*from) return &entry;
    return nullptr;
  };
  return of_block ? find(kOfBlock) : find(kOfModel);
}

// Splits "blocks.7.norm1.bias" into the block's number and the rest; nullopt
// for other names.
std::optional<std::pair<std::string, std::string>> SplitBlock(
    const std::string& name, const std::string& blocks) {
  if (!absl::StartsWith(name, blocks)) return std::nullopt;
  const size_t dot = name.find('.', blocks.size());
  if (dot == std::string::npos) return std::nullopt;
  return std::pair(name.substr(blocks.size(), dot - blocks.size()),
                   name.substr(dot + 1));
}

struct Renamed {
  std::string name;
  Tensor tensor;
};

absl::StatusOr<Renamed> Rename(const std::string& name, const Tensor& tensor,
                               NameOf from, NameOf to) {
  const bool to_gpt2 = to == &Gpt2Name::theirs;
  const std::string ours = "blocks.", theirs = "h.";
  const auto block = SplitBlock(name, to_gpt2 ? ours : theirs);
  const Gpt2Name* const entry =
      FindName(block ? block->second : name, from, block.has_value());
  if (entry == nullptr || (entry->transposed && tensor.rank() != 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GPT-2 has no tensor like ", name, " ", tensor.shape().ToString()));
  }
  return Renamed{
      block
          ? absl::StrCat(to_gpt2 ? theirs : ours, block->first, ".", entry->*to)
          : std::string(entry->*to),
      entry->transposed ? tensor.Transpose(0, 1).Contiguous() : tensor};
}

bool IsMask(const std::string& name) {
  return absl::EndsWith(name, ".attn.bias") ||
         absl::EndsWith(name, ".attn.masked_bias");
}

}  // namespace

absl::StatusOr<nn::StateMap> ToGpt2(const nn::StateMap& state) {
  nn::StateMap theirs;
  for (const auto& [name, tensor] : state) {
    if (name == "head.weight") {
      theirs[kGpt2Head] = tensor;
      continue;
    }
    ASSIGN_OR_RETURN(const Renamed renamed,
                     Rename(name, tensor, &Gpt2Name::ours, &Gpt2Name::theirs));
    theirs[kBase + renamed.name] = renamed.tensor;
  }
  return theirs;
}

absl::StatusOr<nn::StateMap> FromGpt2(const nn::StateMap& state) {
  nn::StateMap ours;
  for (const auto& [name, tensor] : state) {
    if (IsMask(name)) continue;
    if (name == kGpt2Head) {
      ours["head.weight"] = tensor;
      continue;
    }
    ASSIGN_OR_RETURN(const Renamed renamed,
                     Rename(std::string(absl::StripPrefix(name, kBase)), tensor,
                            &Gpt2Name::theirs, &Gpt2Name::ours));
    ours[renamed.name] = renamed.tensor;
  }
  const auto head = ours.find("head.weight"),
             tokens = ours.find("tokens.weight");
  if (head != ours.end() && tokens != ours.end() &&
      head->second.shape() == tokens->second.shape() &&
      ops::BitEqual(head->second, tokens->second))
    ours.erase(head);
  return ours;
}

}  // namespace baton::models
