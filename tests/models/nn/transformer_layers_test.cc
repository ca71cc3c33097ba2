// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "autograd/functions/attention.h"
#include "models/nn/activation.h"
#include "models/nn/attention.h"
#include "models/nn/layer_norm.h"
#include "models/nn/loss.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/test_device.h"

namespace baton::nn {
namespace {

using ::baton::testing::GoldenCase;
using ::baton::testing::LargestDistance;
using ::testing::Each;

constexpr double kExact = 1e-11;

// `layer` against a case of tools/golden/transformer.py.
void ExpectPyTorchsLayer(const std::string& name, Module& layer) {
  const GoldenCase golden("transformer.safetensors", name);
  golden.Load(layer);
  const Variable x = golden.Leaf("x");
  const Variable y = layer.Forward(x);
  EXPECT_LT(LargestDistance(y.tensor(), golden["y"]), kExact) << name;
  y.Backward(golden["dy"]);
  EXPECT_LT(LargestDistance(x.grad(), golden["dx"]), kExact) << name;
  golden.ExpectGradients(layer, kExact);
}

TEST(LayerNorm, ComputesWhatPyTorchDoes) {
  LayerNorm norm({4, 5}, 1e-3);
  ExpectPyTorchsLayer("layer_norm", norm);
}

TEST(LayerNorm, StartsAsTheIdentityAndKeepsItsPrecision) {
  LayerNorm norm({3});
  EXPECT_THAT(norm.weight().tensor().ToVector<float>(), Each(1));
  EXPECT_THAT(norm.bias().tensor().ToVector<float>(), Each(0));
  norm.LowerPrecision(DType::kBF16);
  EXPECT_EQ(norm.weight().dtype(), DType::kF32);
  EXPECT_EQ(norm.Forward(Tensor::Ones({2, 3}).To(DType::kBF16)).dtype(),
            DType::kBF16);
  EXPECT_THROW(LayerNorm({0}), Error);
  EXPECT_THROW(LayerNorm(Shape{}), Error);
}

TEST(Activations, ComputeWhatPyTorchDoes) {
  GELU gelu;
  ExpectPyTorchsLayer("gelu", gelu);
  SiLU silu;
  ExpectPyTorchsLayer("silu", silu);
}

TEST(Attention, ComputesWhatPyTorchDoes) {
  for (bool causal : {false, true}) {
    const GoldenCase golden("transformer.safetensors",
                            causal ? "attention_causal" : "attention");
    const Variable q = golden.Leaf("q"), k = golden.Leaf("k");
    const Variable v = golden.Leaf("v");
    const Variable y = autograd::Attention(q, k, v, {.causal = causal});
    EXPECT_LT(LargestDistance(y.tensor(), golden["y"]), kExact) << causal;
    y.Backward(golden["dy"]);
    EXPECT_LT(LargestDistance(q.grad(), golden["dq"]), kExact) << causal;
    EXPECT_LT(LargestDistance(k.grad(), golden["dk"]), kExact) << causal;
    EXPECT_LT(LargestDistance(v.grad(), golden["dv"]), kExact) << causal;
  }
}

TEST(CrossEntropy, OfTokensComputesWhatPyTorchDoes) {
  const GoldenCase golden("transformer.safetensors", "cross_entropy");
  const Variable logits = golden.Leaf("x");
  const Variable loss = CrossEntropy(logits, golden["targets"]);
  EXPECT_LT(LargestDistance(loss.tensor(), golden["y"]), kExact);
  loss.Backward(golden["dy"]);
  EXPECT_LT(LargestDistance(logits.grad(), golden["dx"]), kExact);
}

TEST(MultiHeadAttention, ComputesWhatPyTorchDoes) {
  Generator generator(0);
  MultiHeadAttention open(8, 2, generator);
  ExpectPyTorchsLayer("multi_head", open);
  MultiHeadAttention causal(8, 2, generator, {.causal = true});
  ExpectPyTorchsLayer("multi_head_causal", causal);
}

TEST(MultiHeadAttention, RefusesWidthsThatAreNotItsOwn) {
  Generator generator(0);
  MultiHeadAttention layer(8, 2, generator);
  EXPECT_THROW(layer.Forward(Tensor::Ones({2, 3, 6})), Error);
  EXPECT_THROW(MultiHeadAttention(8, 3, generator), Error);
}

}  // namespace
}  // namespace baton::nn
