// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "models/data/text.h"
#include "models/nn/loss.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

namespace baton::models {
namespace {

using ::baton::test::Put;
using ::baton::test::TestDevice;
using ::baton::testing::GoldenCase;
using ::baton::testing::LargestDistance;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TransformerOptions kSmall = {
    .vocabulary = 11, .context = 6, .width = 8, .layers = 2, .heads = 2};

std::unique_ptr<Transformer> Made(const TransformerOptions& options) {
  auto model = Transformer::Make(options);
  EXPECT_TRUE(model.ok()) << model.status();
  (*model)->To(TestDevice());
  return *std::move(model);
}

Tensor Ids(const Shape& shape) {
  Generator generator(5);
  return Put(RandInt(0, 11, shape, generator));
}

TEST(Transformer, ComputesWhatPyTorchDoes) {
  const GoldenCase golden("transformer.safetensors", "language_model");
  const auto model = Made(kSmall);
  golden.Load(*model);
  const Variable logits = model->Forward(golden["ids"]);
  EXPECT_LT(LargestDistance(logits.tensor(), golden["logits"]), 1e-10);
  const Variable loss = nn::CrossEntropy(logits, golden["targets"]);
  EXPECT_LT(LargestDistance(loss.tensor(), golden["loss"]), 1e-11);
  loss.Backward();
  golden.ExpectGradients(*model, 1e-10);
}

TEST(Transformer, LooksAtNoLaterTokens) {
  const auto model = Made(kSmall);
  const Tensor ids = Ids({2, 6});
  const Tensor before = model->Forward(ids).tensor().Slice(1, 0, 4);
  ids.Slice(1, 4, 6).Fill(3);
  const Tensor after = model->Forward(ids).tensor().Slice(1, 0, 4);
  EXPECT_TRUE(ops::BitEqual(before.Contiguous(), after.Contiguous()));
  const Tensor shorter = model->Forward(ids.Slice(1, 0, 4)).tensor();
  EXPECT_TRUE(ops::AllClose(shorter, after, 1e-5, 1e-6));
}

TEST(Transformer, StagesTogetherEqualTheWhole) {
  for (bool tied : {true, false}) {
    TransformerOptions options = kSmall;
    options.layers = 3;
    options.tied = tied;
    const auto whole = Made(options);
    const Tensor ids = Ids({2, 5});
    std::vector<Variable> values = {Variable(ids)};
    nn::StateMap parts;
    for (int i = 0; i < 3; ++i) {
      auto stage =
          Transformer::MakeStage(options, {"embedding", "blocks.1"}, i);
      ASSERT_TRUE(stage.ok()) << stage.status();
      (*stage)->To(TestDevice());
      values = (*stage)->ForwardAll(values);
      for (const auto& [name, value] : (*stage)->StateDict())
        EXPECT_TRUE(parts.emplace(name, value).second) << name;
    }
    EXPECT_TRUE(
        ops::BitEqual(values.at(0).tensor(), whole->Forward(ids).tensor()));
    const nn::StateMap all = whole->StateDict();
    ASSERT_EQ(parts.size(), all.size());
    for (const auto& [name, value] : all)
      EXPECT_TRUE(ops::BitEqual(parts.at(name), value)) << name;
  }
}

// Which a head that is cut off needs, and which others do without.
TEST(Transformer, AskForTheWeightOfTiedTokensWhereItIsMissing) {
  const auto part = [](int index) {
    auto stage =
        *Transformer::MakeStage(kSmall, {"embedding", "blocks.1"}, index);
    stage->To(TestDevice());
    return stage;
  };
  const Variable hidden(
      Tensor::Zeros({2, 5, kSmall.width}, {.device = TestDevice()}));
  EXPECT_EQ(part(1)->ForwardAll({hidden}).size(), 1u);
  const auto message = [](auto&& call) {
    return CatchErrors([&] { call(); }).ToString();
  };
  EXPECT_THAT(message([&] { part(2)->Forward(hidden); }),
              HasSubstr("takes the weight of the tokens as a second value"));
  EXPECT_THAT(message([&] {
                part(0)->Forward(Variable(Ids({2, 5})));
              }),
              HasSubstr("gives its weight, too: call ForwardAll"));
  EXPECT_THAT(
      message([&] {
        part(1)->ForwardAll({hidden, hidden, hidden});
      }),
      HasSubstr("units blocks.0 to blocks.1 take 1 or 2 values, got 3"));
}

TEST(Transformer, NamesItsUnitsAndRefusesWhatIsNone) {
  EXPECT_THAT(*TransformerUnits(kSmall),
              ElementsAre("embedding", "blocks.0", "blocks.1", "head"));
  const auto stage = Transformer::MakeStage(kSmall, {"blocks"}, 1);
  ASSERT_TRUE(stage.ok());
  EXPECT_THAT((*stage)->units(), ElementsAre("head"));
  const auto refusal = [](const TransformerOptions& options,
                          const std::vector<std::string>& cuts) {
    return Transformer::MakeStage(options, cuts, 0).status().ToString();
  };
  EXPECT_THAT(refusal(kSmall, {"blocks.7"}),
              HasSubstr("Transformer: no place 'blocks.7'"));
  EXPECT_THAT(refusal(kSmall, {"head"}), HasSubstr("leaves a stage empty"));
  TransformerOptions odd = kSmall;
  odd.heads = 3;
  EXPECT_THAT(refusal(odd, {}), HasSubstr("3 heads do not divide"));
  odd = kSmall;
  odd.layers = int64_t{1} << 60;
  EXPECT_THAT(refusal(odd, {}), HasSubstr("layers must be 1 to 10000"));
  odd = kSmall;
  odd.width = 0;
  EXPECT_THAT(refusal(odd, {}), HasSubstr("width"));
  const auto model = Made(kSmall);
  EXPECT_THROW(model->Forward(Ids({2, 7})), Error);
  EXPECT_THROW(model->Forward(Put(Tensor::Ones({2, 4}))), Error);
}

// The mean loss at the end of training on a text that repeats itself.
double LearnedLoss(DType dtype) {
  const int threads = ComputeThreads();
  SetComputeThreads(1);  // so small a model has no work for two
  std::string words;
  for (int i = 0; i < 40; ++i) words += "the cat sat on the mat and saw it. ";
  const data::ByteText text(words);
  const auto model = Made({.vocabulary = data::ByteText::kVocabulary,
                           .context = 16,
                           .width = 32,
                           .layers = 2,
                           .heads = 4});
  model->LowerPrecision(dtype);
  optim::AdamW adam(model->Parameters(), {.lr = 3e-3});
  adam.set_schedule(optim::WarmUp(25, optim::CosineLr({.total = 225})));
  Generator generator(2);
  double last = 0;
  for (int64_t step = 0; step < 250; ++step) {
    const data::TokenBatch batch = text.Draw(8, 16, generator);
    adam.ZeroGrad();
    const Variable loss =
        nn::CrossEntropy(model->Forward(Put(batch.ids)), Put(batch.targets));
    EXPECT_EQ(loss.dtype(), DType::kF32);
    loss.Backward();
    adam.Step();
    last = loss.tensor().Item();
  }
  SetComputeThreads(threads);
  return last;
}

// What a model of this text that sees one token alone has at best: the entropy
// of a byte of it where the one before is known.
constexpr double kLossByLastToken = 0.834;

TEST(Transformer, LearnsAText) {
  EXPECT_LT(LearnedLoss(DType::kF32), kLossByLastToken);
}
TEST(Transformer, LearnsATextInBf16) {
  EXPECT_LT(LearnedLoss(DType::kBF16), kLossByLastToken);
}

}  // namespace
}  // namespace baton::models
