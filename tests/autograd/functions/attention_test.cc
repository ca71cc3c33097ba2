// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/attention.h"

#include "autograd/functions/shape.h"
#include "core/ops/arithmetic.h"
#include "tests/support/gradcheck.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

using ::baton::test::Put;
using ::baton::testing::GradCheck;
using ::baton::testing::Random;
using Inputs = const std::vector<Variable>&;

const Shape kQueries = {2, 2, 3, 4}, kKeys = {2, 2, 5, 4},
            kValues = {2, 2, 5, 3};

TEST(AttentionGradients, Plain) {
  EXPECT_TRUE(GradCheck([](Inputs v) { return Attention(v[0], v[1], v[2]); },
                        {Random(kQueries), Random(kKeys), Random(kValues)}));
}

TEST(AttentionGradients, Causal) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return Attention(v[0], v[1], v[2], {.causal = true}); },
      {Random(kQueries), Random(kKeys), Random(kValues)}));
}

TEST(AttentionGradients, OfSelfAttention) {
  EXPECT_TRUE(GradCheck(
      [](Inputs v) { return SelfAttention(v[0], 2, {.causal = true}); },
      {Random({2, 4, 18})}));
}

TEST(SelfAttention, IsAttentionOfItsThirds) {
  const Variable qkv(Put(Random({2, 4, 18})));
  const auto part = [&](int64_t i) {
    return Transpose(Reshape(Slice(qkv, 2, 6 * i, 6 * i + 6), {2, 4, 2, 3}), 1,
                     2);
  };
  const Variable apart = Attention(part(0), part(1), part(2));
  EXPECT_TRUE(ops::AllClose(SelfAttention(qkv, 2).tensor(),
                            Reshape(Transpose(apart, 1, 2), {2, 4, 6}).tensor(),
                            1e-12, 1e-12));
  EXPECT_THROW(SelfAttention(qkv, 4), Error);
}

}  // namespace
}  // namespace baton::autograd
