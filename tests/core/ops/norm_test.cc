// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/parallel.h"
#include "tests/core/ops/norm_cases.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::ops {
namespace {

using ::baton::test::Put;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ::testing::HasSubstr;

// dy where y, as computed, is above 0.
Doubles MaskedGradient(const NormInputs& in, const Tensor& y, bool relu) {
  Doubles g = ToDoubles(in.dy);
  const Doubles values = ToDoubles(y);
  for (size_t i = 0; i < g.size(); ++i) {
    if (relu && !(values[i] > 0)) g[i] = 0;
  }
  return g;
}

void ExpectGradients(const NormCase& c, const BatchNormGradients& got,
                     const Doubles& g, const NormReference& reference,
                     bool through_statistics) {
  const double tolerance = 4 * ToleranceOf(c.dtype);
  const std::string what = Describe(c);
  Doubles dgamma(reference.channels, 0.0), dbeta(reference.channels, 0.0);
  for (size_t i = 0; i < g.size(); ++i) {
    dgamma[reference.channel(i)] += g[i] * reference.normal(i);
    dbeta[reference.channel(i)] += g[i];
  }
  Doubles dx(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const size_t ch = reference.channel(i);
    double value = g[i];
    if (through_statistics) {
      value -= (dbeta[ch] + reference.normal(i) * dgamma[ch]) / reference.count;
    }
    dx[i] = value * reference.gamma[ch] * reference.inverse(ch);
  }
  const Shape channel_shape = {c.shape[1]};
  ExpectNear(got.dgamma, channel_shape, dgamma, tolerance, what + " dgamma");
  ExpectNear(got.dbeta, channel_shape, dbeta, tolerance, what + " dbeta");
  ExpectNear(got.dx, c.shape, dx, tolerance, what + " dx");
  EXPECT_EQ(got.dresidual.defined(), c.residual) << what;
  if (c.residual)
    ExpectNear(got.dresidual, c.shape, g, tolerance, what + " dresidual");
}

TEST(BatchNormTrain, EqualsItsDefinition) {
  for (const NormCase& c : NormCases()) {
    const NormInputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    const BatchNormResult result = BatchNormTrain(
        in.x, in.gamma, in.beta, in.residual, Tensor(), Tensor(), options);
    const NormReference reference = ReferenceOf(c, in, options.eps);
    const Doubles residual = c.residual ? ToDoubles(in.residual) : Doubles();
    ExpectNear(result.y, c.shape, reference.Forward(residual, c.relu),
               2 * ToleranceOf(c.dtype), Describe(c));
    EXPECT_EQ(result.y.dtype(), c.dtype);
    const double tolerance = std::min(1e-5, ToleranceOf(c.dtype));
    ExpectNear(result.mean, {c.shape[1]}, reference.mean, tolerance, "mean");
    if (c.shape.rank() == 4) {
      EXPECT_TRUE(result.y.IsContiguous(in.x.SuggestFormat()));
    }
  }
}

TEST(BatchNormBackward, EqualsItsDefinition) {
  for (const NormCase& c : NormCases()) {
    const NormInputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    const BatchNormResult forward = BatchNormTrain(
        in.x, in.gamma, in.beta, in.residual, Tensor(), Tensor(), options);
    const NormReference reference = ReferenceOf(c, in, options.eps);
    const Doubles g = MaskedGradient(in, forward.y, c.relu);
    ExpectGradients(
        c,
        BatchNormBackward(in.dy, in.x, in.gamma, forward, c.residual, options),
        g, reference, true);
    BatchNormResult saved = forward;  // what only keeps y and the statistics
    saved.scale = saved.shift = Tensor();
    ExpectGradients(
        c, BatchNormBackward(in.dy, in.x, in.gamma, saved, c.residual, options),
        g, reference, true);
  }
}

TEST(BatchNormEval, UsesTheRunningStatistics) {
  for (const NormCase& c : NormCases()) {
    const NormInputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    NormReference reference = ReferenceOf(c, in, options.eps);
    for (size_t i = 0; i < reference.channels; ++i) {
      reference.mean[i] = 0.125 * static_cast<double>(i % 3);
      reference.variance[i] = 0.5 + 0.25 * static_cast<double>(i % 5);
    }
    const Tensor mean = Put(reference.mean);
    const Tensor variance = Put(reference.variance);
    const Tensor y = BatchNormEval(in.x, in.gamma, in.beta, in.residual, mean,
                                   variance, options);
    const Doubles residual = c.residual ? ToDoubles(in.residual) : Doubles();
    ExpectNear(y, c.shape, reference.Forward(residual, c.relu),
               2 * ToleranceOf(c.dtype), Describe(c));
    ExpectGradients(c,
                    BatchNormEvalBackward(in.dy, in.x, y, in.gamma, mean,
                                          variance, c.residual, options),
                    MaskedGradient(in, y, c.relu), reference, false);
  }
}

TEST(BatchNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  const int before = ComputeThreads();
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    const NormCase c = {{24, 64, 20, 20}, format, DType::kF32, true, true};
    const NormInputs in(c);
    std::vector<std::vector<float>> results;
    for (int threads : {1, 2, 3, 2}) {
      SetComputeThreads(threads);
      const BatchNormResult forward =
          BatchNormTrain(in.x, in.gamma, in.beta, in.residual, Tensor(),
                         Tensor(), {.relu = true});
      const BatchNormGradients gradients = BatchNormBackward(
          in.dy, in.x, in.gamma, forward, true, {.relu = true});
      results.push_back(forward.y.ToVector<float>());
      for (const Tensor& t :
           {gradients.dx, gradients.dgamma, gradients.dbeta}) {
        const std::vector<float> more = t.ToVector<float>();
        results.back().insert(results.back().end(), more.begin(), more.end());
      }
      EXPECT_EQ(results.back(), results.front());
    }
  }
  SetComputeThreads(before);
}

TEST(BatchNorm, TakesViewsAndOtherOrders) {
  const NormCase c = {
      {4, 6, 3, 5}, MemoryFormat::kContiguous, DType::kF32, true};
  const NormInputs in(c);
  const Tensor wide = Put(Numbers({4, 6, 3, 10}, DType::kF32, 1));
  const Tensor x = wide.Slice(3, 0, 10, 2);
  // Between other numbers, which must stay.
  const Tensor rows = Put(Tensor::Ones({6, 2}));
  const Tensor running = rows.Select(1, 0);
  const BatchNormOptions options = {.relu = true};
  const BatchNormResult result = BatchNormTrain(x, in.gamma, in.beta, Tensor(),
                                                running, Tensor(), options);
  const NormReference reference(c.shape, ToDoubles(x), ToDoubles(in.gamma),
                                ToDoubles(in.beta), options.eps);
  ExpectNear(result.y, c.shape, reference.Forward({}, true),
             2 * ToleranceOf(c.dtype), "view");
  Doubles expected;
  for (size_t ch = 0; ch < 6; ++ch) {
    expected.push_back(0.9 + 0.1 * reference.mean[ch]);
    expected.push_back(1);
  }
  ExpectNear(rows, {6, 2}, expected, 1e-6, "running mean in a view");
  const Tensor dy = in.dy.Contiguous(MemoryFormat::kChannelsLast);
  ExpectGradients(c, BatchNormBackward(dy, x, in.gamma, result, false, options),
                  MaskedGradient(in, result.y, true), reference, true);
}

TEST(BatchNorm, EvalTakesAnEmptyBatch) {
  const Tensor y = BatchNormEval(Put(Tensor::Zeros({0, 3, 4, 4})), Tensor(),
                                 Tensor(), Tensor(), Put(Tensor::Zeros({3})),
                                 Put(Tensor::Ones({3})), {});
  EXPECT_EQ(y.shape(), Shape({0, 3, 4, 4}));
}

TEST(BatchNorm, NamesWhatDoesNotFit) {
  const Tensor x = Put(Tensor::Zeros({2, 3, 4, 4}));
  const Tensor none;
  const auto train = [&](const Tensor& input, const Tensor& gamma,
                         const Tensor& residual) {
    return ErrorOf(
        [&] { BatchNormTrain(input, gamma, none, residual, none, none, {}); });
  };
  EXPECT_EQ(train(x, Put(Tensor::Zeros({4})), none),
            "[batch_norm] expected gamma [3] for x [2, 3, 4, 4], got [4]");
  EXPECT_THAT(train(Put(Tensor::Zeros({3})), none, none),
              HasSubstr("expected x [N, C, ...], got [3]"));
  EXPECT_THAT(train(x, none, Put(Tensor::Zeros({2, 3, 4, 5}))),
              HasSubstr("expected residual like x, f32[2, 3, 4, 4]"));
  EXPECT_THAT(train(x.To(DType::kI32), none, none),
              HasSubstr("floating x, got i32"));
  EXPECT_THAT(train(Put(Tensor::Zeros({1, 3})), none, none),
              HasSubstr("more than one value a channel"));
  EXPECT_THAT(
      ErrorOf([&] { BatchNormEval(x, none, none, none, none, none, {}); }),
      HasSubstr("expected running statistics"));
  EXPECT_THAT(ErrorOf([&] {
                BatchNormBackward(
                    Put(Tensor::Zeros({2, 3})), x, none,
                    BatchNormTrain(x, none, none, none, none, none, {}), false,
                    {});
              }),
              HasSubstr("[batch_norm_backward] expected dy like x"));
}

}  // namespace
}  // namespace baton::ops
