// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/gpt2_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "core/ops/arithmetic.h"
#include "models/transformer.h"
#include "tests/support/golden/golden_path.h"

namespace baton::models {
namespace {

nn::StateMap SmallState(bool tied) {
  return (*Transformer::Make({.vocabulary = 11,
                              .context = 5,
                              .width = 8,
                              .layers = 2,
                              .heads = 2,
                              .tied = tied}))
      ->StateDict();
}

// Those of GPT2LMHeadModel with the same sizes.
TEST(Gpt2Names, AreThoseOfHuggingFace) {
  std::map<std::string, std::string> expected, actual;
  std::ifstream file(testing::GoldenPath("gpt2_names.txt"));
  for (std::string name, extents; file >> name >> extents;)
    expected[name] = extents;
  ASSERT_EQ(expected.size(), 29u);
  const auto state = ToGpt2(SmallState(false));
  ASSERT_TRUE(state.ok()) << state.status();
  for (const auto& [name, tensor] : *state)
    actual[name] = absl::StrJoin(tensor.shape(), "x");
  EXPECT_EQ(actual, expected);
  expected.erase("lm_head.weight");
  EXPECT_EQ(ToGpt2(SmallState(true))->size(), expected.size());
}

TEST(Gpt2Names, ComeBackAsTheyWere) {
  for (const bool tied : {true, false}) {
    const nn::StateMap state = SmallState(tied);
    nn::StateMap theirs = *ToGpt2(state);
    // As files of GPT-2 are, too.
    theirs["transformer.h.0.attn.bias"] = Tensor::Ones({1, 1, 5, 5});
    if (tied) theirs["lm_head.weight"] = theirs["transformer.wte.weight"];
    const auto node = theirs.extract("transformer.ln_f.bias");
    theirs["ln_f.bias"] = node.mapped();
    const auto back = FromGpt2(theirs);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(back->size(), state.size());
    for (const auto& [name, tensor] : state)
      EXPECT_TRUE(ops::BitEqual(back->at(name), tensor)) << name;
  }
}

TEST(Gpt2Names, OtherModelsHaveNone) {
  for (const char* name :
       {"fc.weight", "blocks.0.conv.weight", "blocks.norm1.bias"}) {
    const auto state = ToGpt2({{name, Tensor::Ones({2, 2})}});
    EXPECT_TRUE(absl::IsInvalidArgument(state.status())) << state.status();
    EXPECT_NE(state.status().message().find(name), std::string::npos);
  }
  EXPECT_FALSE(FromGpt2({{"h.0.mlp.c_fc.weight", Tensor::Ones({2})}}).ok());
}

}  // namespace
}  // namespace baton::models
