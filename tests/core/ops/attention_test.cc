// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using test::ErrorOf;
using test::Put;
using test::TestDevice;
using ::testing::HasSubstr;

Tensor RandomOf(const Shape& shape, uint64_t seed) {
  Generator generator(seed);
  // bf16 has these exactly, so that only the arithmetic differs.
  return Put(RandNormal(shape, generator, DType::kF64).To(DType::kBF16))
      .To(DType::kF64);
}

AttentionInputs MakeInputs(const Shape& q, int64_t keys, int64_t width) {
  return {RandomOf(q, 1), RandomOf({q[0], q[1], keys, q[3]}, 2),
          RandomOf({q[0], q[1], keys, width}, 3)};
}

AttentionInputs As(const AttentionInputs& in, DType dtype) {
  return {in.q.To(dtype), in.k.To(dtype), in.v.To(dtype)};
}

// What query i adds to its scores of keys j > i.
Tensor CausalMask(int64_t queries, int64_t keys) {
  std::vector<double> mask;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) mask.push_back(j > i ? -1e30 : 0);
  }
  return Put(mask, {queries, keys});
}

struct Want {
  Tensor y;
  AttentionGradients grads;
};

// All weights at once, in f64.
Want Slow(const AttentionInputs& in, const Tensor& dy,
          const AttentionOptions& options) {
  const double scale = 1 / std::sqrt(static_cast<double>(in.q.dim(3)));
  Tensor scores = MulScalar(Matmul(in.q, in.k.Transpose(-2, -1)), scale);
  if (options.causal)
    scores = Add(scores, CausalMask(in.q.dim(2), in.k.dim(2)));
  const Tensor weights = Softmax(scores, -1);
  const Tensor dscores = MulScalar(
      SoftmaxBackward(Matmul(dy, in.v.Transpose(-2, -1)), weights, -1), scale);
  return {Matmul(weights, in.v),
          {Matmul(dscores, in.k), Matmul(dscores.Transpose(-2, -1), in.q),
           Matmul(weights.Transpose(-2, -1), dy)}};
}

AttentionGradients Gradients(const Tensor& dy, const AttentionInputs& in,
                             const AttentionResult& forward,
                             const AttentionOptions& options) {
  const AttentionGradients grads = {Tensor::EmptyLike(in.q),
                                    Tensor::EmptyLike(in.k),
                                    Tensor::EmptyLike(in.v)};
  AttentionBackward(dy, in, forward, options, grads);
  for (const Tensor* x : {&grads.q, &grads.k, &grads.v})
    EXPECT_GT(x->version(), 0U);  // it was written in place
  return grads;
}

void ExpectNear(const Tensor& got, const Tensor& want, double tolerance) {
  const Tensor distance = Abs(Sub(got.To(DType::kF64), want));
  const double largest = Max(Abs(want).Flatten(), 0).values.Item();
  EXPECT_LT(Max(distance.Flatten(), 0).values.Item(),
            tolerance * (1 + largest));
}

void ExpectAttention(const AttentionInputs& in, const AttentionOptions& options,
                     DType dtype) {
  SCOPED_TRACE(::testing::Message() << Name(dtype) << in.q.shape().ToString());
  const Tensor dy =
      RandomOf({in.q.dim(0), in.q.dim(1), in.q.dim(2), in.v.dim(3)}, 5);
  const Want want = Slow(in, dy, options);
  const AttentionInputs typed = As(in, dtype);
  const AttentionResult got = Attention(typed, options);
  ASSERT_EQ(got.y.dtype(), dtype);
  const double tolerance = dtype == DType::kF64   ? 1e-11
                           : dtype == DType::kF32 ? 1e-5
                                                  : 2e-2;
  ExpectNear(got.y, want.y, tolerance);
  const AttentionGradients grads = Gradients(dy.To(dtype), typed, got, options);
  ExpectNear(grads.q, want.grads.q, tolerance);
  ExpectNear(grads.k, want.grads.k, tolerance);
  ExpectNear(grads.v, want.grads.v, tolerance);
}

TEST(Attention, AgreesWithItsPartsInEveryDType) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    ExpectAttention(MakeInputs({2, 3, 17, 8}, 23, 16), {}, dtype);
    ExpectAttention(MakeInputs({2, 3, 17, 8}, 23, 5), {}, dtype);
    ExpectAttention(MakeInputs({2, 2, 64, 64}, 64, 64), {.causal = true},
                    dtype);
  }
}

// In several blocks of queries, and of the batch; with more queries than keys
// and fewer.
TEST(Attention, IsTheSameInBlocks) {
  ExpectAttention(MakeInputs({2, 2, 300, 4}, 290, 4), {.causal = true},
                  DType::kF64);
  ExpectAttention(MakeInputs({2, 2, 40, 4}, 290, 4), {.causal = true},
                  DType::kF64);
  ExpectAttention(MakeInputs({9, 1, 128, 2}, 8192, 2), {}, DType::kF32);
}

TEST(Attention, ReadsAndWritesStridedTensors) {
  const Tensor all = RandomOf({2, 9, 3, 2, 4}, 7);  // [N, T, 3, H, D]
  const auto part = [&](const Tensor& x, int64_t i) {
    return x.Select(2, i).Transpose(1, 2);
  };
  const AttentionInputs in = {part(all, 0), part(all, 1), part(all, 2)};
  const AttentionInputs dense = {in.q.Contiguous(), in.k.Contiguous(),
                                 in.v.Contiguous()};
  const AttentionResult a = Attention(in, {.causal = true});
  const AttentionResult b = Attention(dense, {.causal = true});
  EXPECT_TRUE(BitEqual(a.y, b.y));
  EXPECT_TRUE(a.y.Transpose(1, 2).IsContiguous());
  const Tensor dy = RandomOf({2, 2, 9, 4}, 8);
  const Tensor into = Tensor::EmptyLike(all);
  AttentionBackward(dy, in, a, {.causal = true},
                    {part(into, 0), part(into, 1), part(into, 2)});
  const AttentionGradients want = Gradients(dy, dense, b, {.causal = true});
  EXPECT_TRUE(BitEqual(part(into, 0).Contiguous(), want.q.Contiguous()));
  EXPECT_TRUE(BitEqual(part(into, 1).Contiguous(), want.k.Contiguous()));
  EXPECT_TRUE(BitEqual(part(into, 2).Contiguous(), want.v.Contiguous()));
}

TEST(Attention, IsOneKernelOfAGpuWhereItCanBe) {
  const AttentionInputs in = MakeInputs({2, 2, 64, 64}, 64, 64);
  const bool gpu = !TestDevice().is_cpu();
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (bool causal : {false, true}) {
      EXPECT_EQ(Attention(As(in, dtype), {.causal = causal}).log_sums.defined(),
                gpu);
    }
  }
  EXPECT_FALSE(Attention(As(in, DType::kF32), {}).log_sums.defined());
}

TEST(Attention, IsTheSameForAnyNumberOfThreads) {
  const AttentionInputs in = As(MakeInputs({3, 2, 70, 8}, 90, 8), DType::kF32);
  const Tensor dy = RandomOf({3, 2, 70, 8}, 9).To(DType::kF32);
  const int before = ComputeThreads();
  std::vector<Tensor> results;
  for (int threads : {1, 3}) {
    SetComputeThreads(threads);
    const AttentionResult forward = Attention(in, {});
    results.push_back(forward.y);
    results.push_back(Gradients(dy, in, forward, {}).k);
  }
  SetComputeThreads(before);
  EXPECT_TRUE(BitEqual(results[0], results[2]));
  EXPECT_TRUE(BitEqual(results[1], results[3]));
}

TEST(Attention, WrongArgumentsAreNamed) {
  const AttentionInputs in = MakeInputs({1, 2, 3, 4}, 5, 4);
  const auto text = [](const AttentionInputs& inputs) {
    return ErrorOf([&] { Attention(inputs, {}); });
  };
  EXPECT_THAT(text({in.q, in.k, in.q}),
              HasSubstr("[attention] expected q [N, H, T, D]"));
  EXPECT_THAT(text({in.q, in.k.To(DType::kF32), in.v}), HasSubstr("f32"));
  const AttentionResult forward = Attention(in, {});
  EXPECT_THAT(ErrorOf([&] {
                AttentionBackward(in.k, in, forward, {}, {in.q, in.k, in.v});
              }),
              HasSubstr("[attention_backward] dy [1, 2, 5, 4] is not like y"));
}

}  // namespace
}  // namespace baton::ops
