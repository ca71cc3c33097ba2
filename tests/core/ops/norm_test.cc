// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/ops/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/parallel.h"
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

using Doubles = std::vector<double>;

Doubles ToDoubles(const Tensor& tensor) {
  return tensor.To(DType::kF64).ToVector<double>();
}

struct Case {
  Shape shape;
  MemoryFormat format = MemoryFormat::kContiguous;
  DType dtype = DType::kF32;
  bool relu = false;
  bool residual = false;
};

std::string Describe(const Case& c) {
  return c.shape.ToString() + Name(c.dtype) +
         (c.format == MemoryFormat::kChannelsLast ? " last" : "") +
         (c.relu ? " relu" : "") + (c.residual ? " residual" : "");
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Shape& shape :
       {Shape({4, 3}), Shape({2, 5, 7}), Shape({3, 16, 4, 4}),
        Shape({2, 7, 13, 11}), Shape({40, 64, 9, 9}), Shape({2, 3, 2, 2, 3})}) {
    for (MemoryFormat format :
         {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
      for (bool relu : {false, true}) {
        for (bool residual : {false, true}) {
          for (DType dtype : {DType::kF32, DType::kF64})
            cases.push_back({shape, format, dtype, relu, residual});
        }
      }
    }
  }
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    cases.push_back(
        {{3, 16, 4, 4}, MemoryFormat::kChannelsLast, dtype, true, true});
    cases.push_back(
        {{3, 16, 4, 4}, MemoryFormat::kContiguous, dtype, true, false});
  }
  return cases;
}

// Batch norm by its definition, over row-major arrays in double.
struct Reference {
  Reference(const Shape& shape, const Doubles& x_in, const Doubles& gamma_in,
            const Doubles& beta_in, double eps)
      : channels(static_cast<size_t>(shape[1])),
        inner(x_in.size() / (static_cast<size_t>(shape[0]) * channels)),
        count(static_cast<double>(x_in.size() / channels)),
        x(x_in),
        gamma(gamma_in),
        beta(beta_in),
        mean(channels, 0.0),
        variance(channels, 0.0),
        epsilon(eps) {
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / count;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = x[i] - mean[channel(i)];
      variance[channel(i)] += d * d / count;
    }
  }
  size_t channel(size_t i) const { return i / inner % channels; }
  double inverse(size_t c) const {
    return 1.0 / std::sqrt(variance[c] + epsilon);
  }
  double normal(size_t i) const {
    return (x[i] - mean[channel(i)]) * inverse(channel(i));
  }
  Doubles Forward(const Doubles& residual, bool relu) const {
    Doubles y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = normal(i) * gamma[channel(i)] + beta[channel(i)];
      if (!residual.empty()) y[i] += residual[i];
      if (relu) y[i] = std::max(y[i], 0.0);
    }
    return y;
  }

  size_t channels, inner;
  double count;
  Doubles x, gamma, beta, mean, variance;
  double epsilon;
};

struct Inputs {
  explicit Inputs(const Case& c)
      : x(Put(Numbers(c.shape, c.dtype, 1, c.format))),
        residual(c.residual ? Put(Numbers(c.shape, c.dtype, 2, c.format))
                            : Tensor()),
        dy(Put(Numbers(c.shape, c.dtype, 3, c.format))),
        gamma(Put(Numbers({c.shape[1]}, c.dtype, 4))),
        beta(Put(Numbers({c.shape[1]}, c.dtype, 5))) {}
  Tensor x, residual, dy, gamma, beta;
};

Reference ReferenceOf(const Case& c, const Inputs& in, double eps) {
  return Reference(c.shape, ToDoubles(in.x), ToDoubles(in.gamma),
                   ToDoubles(in.beta), eps);
}

// dy where y, as computed, is above 0.
Doubles MaskedGradient(const Inputs& in, const Tensor& y, bool relu) {
  Doubles g = ToDoubles(in.dy);
  const Doubles values = ToDoubles(y);
  for (size_t i = 0; i < g.size(); ++i) {
    if (relu && !(values[i] > 0)) g[i] = 0;
  }
  return g;
}

void ExpectGradients(const Case& c, const BatchNormGradients& got,
                     const Doubles& g, const Reference& reference,
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
  for (const Case& c : Cases()) {
    const Inputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    const BatchNormResult result = BatchNormTrain(
        in.x, in.gamma, in.beta, in.residual, Tensor(), Tensor(), options);
    const Reference reference = ReferenceOf(c, in, options.eps);
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

TEST(JoinMoments, GivesThoseOfAllBatchesTakenAsOne) {
  for (const Case& c : Cases()) {
    if (c.relu || c.residual) continue;
    const Inputs in(c);
    const int64_t rows = c.shape[0];
    std::vector<Tensor> moments;
    for (const auto& [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {1, rows}}) {
      moments.push_back(BatchMoments(in.x.Slice(0, begin, end)).Unsqueeze(0));
    }
    const Tensor joined = JoinMoments(Cat(moments, 0));
    const Reference reference = ReferenceOf(c, in, 0);
    const double n = reference.count;
    Doubles expected = reference.mean;
    for (const double factor : {n / (n - 1), 1.0})
      for (const double variance : reference.variance)
        expected.push_back(variance * factor);
    expected.insert(expected.end(), reference.channels, n);
    ExpectNear(joined, {4, c.shape[1]}, expected,
               std::min(1e-5, ToleranceOf(c.dtype)), Describe(c));
  }
}

TEST(JoinMoments, AreExactWhenTheMeanIsFarFromZero) {
  const Tensor x = Put(
      AddScalar(MulScalar(Numbers({8, 4, 16, 16}, DType::kF32, 1), 0.5), 1000));
  const Reference reference(x.shape(), ToDoubles(x), {1, 1, 1, 1}, {0, 0, 0, 0},
                            0);
  const Tensor joined =
      JoinMoments(Cat({BatchMoments(x.Slice(0, 0, 3)).Unsqueeze(0),
                       BatchMoments(x.Slice(0, 3, 8)).Unsqueeze(0)},
                      0));
  ExpectNear(joined.Select(0, 2), {4}, reference.variance, 1e-5, "variance");
}

TEST(RunningStatistics, MoveByBatchesInTheirOrder) {
  std::vector<RunningUpdate> updates;
  std::vector<Doubles> means, variances;
  for (int64_t channels : {1, 3, 5000}) {
    for (size_t batches : {0, 1, 19}) {
      RunningUpdate update = {
          .mean = Put(Numbers({channels}, DType::kF32, 1)),
          .variance = Put(Numbers({channels}, DType::kF32, 2)),
          .count = Put<int64_t>({5}, {}),
          .batches = {},
          .momentum = 0.25};
      Doubles mean = ToDoubles(update.mean);
      Doubles variance = ToDoubles(update.variance);
      for (size_t b = 0; b < batches; ++b) {
        update.batches.push_back(Put(
            Numbers({2, channels}, DType::kF32, static_cast<uint64_t>(b + 3))));
        const Doubles of = ToDoubles(update.batches.back());
        for (size_t c = 0; c < mean.size(); ++c) {
          mean[c] += 0.25 * (of[c] - mean[c]);
          variance[c] += 0.25 * (of[mean.size() + c] - variance[c]);
        }
      }
      means.push_back(mean);
      variances.push_back(variance);
      updates.push_back(update);
    }
  }
  UpdateRunningStatistics(updates);
  for (size_t i = 0; i < updates.size(); ++i) {
    const Shape shape = updates[i].mean.shape();
    ExpectNear(updates[i].mean, shape, means[i], 1e-5, "mean");
    ExpectNear(updates[i].variance, shape, variances[i], 1e-5, "variance");
    EXPECT_EQ(updates[i].count.Item(),
              5 + static_cast<double>(updates[i].batches.size()));
  }
  EXPECT_THROW(UpdateRunningStatistics({{.mean = Put(Tensor::Ones({3})),
                                         .variance = Put(Tensor::Ones({4})),
                                         .batches = {}}}),
               Error);
}

TEST(BatchNormTrain, WithMomentumOneForgetsWhatWasThere) {
  const Tensor x = Put(Numbers({4, 3, 5, 5}, DType::kF32, 1));
  const Tensor mean = Put(Tensor::Full({3}, std::nan("")));
  const Tensor variance = Put(Tensor::Full({3}, std::nan("")));
  BatchNormTrain(x, Tensor(), Tensor(), Tensor(), mean, variance,
                 {.momentum = 1});
  const Reference reference(x.shape(), ToDoubles(x), {1, 1, 1}, {0, 0, 0}, 0);
  ExpectNear(mean, {3}, reference.mean, 1e-6, "running mean");
}

TEST(BatchNormTrain, KeepsRunningStatistics) {
  const Tensor x = Put(Numbers({4, 3, 5, 5}, DType::kF32, 1));
  const Tensor mean = Put(Numbers({3}, DType::kF32, 2));
  const Tensor variance = Put(Tensor::Ones({3}));
  const Doubles old_mean = ToDoubles(mean);
  const uint64_t version = mean.version();
  BatchNormTrain(x, Tensor(), Tensor(), Tensor(), mean, variance,
                 {.momentum = 0.25});
  const Reference reference(x.shape(), ToDoubles(x), {1, 1, 1}, {0, 0, 0}, 0);
  Doubles expected_mean, expected_variance;
  for (size_t c = 0; c < 3; ++c) {
    expected_mean.push_back(0.75 * old_mean[c] + 0.25 * reference.mean[c]);
    expected_variance.push_back(0.75 + 0.25 * reference.variance[c] * 100 / 99);
  }
  ExpectNear(mean, {3}, expected_mean, 1e-6, "running mean");
  ExpectNear(variance, {3}, expected_variance, 1e-6, "running variance");
  EXPECT_GT(mean.version(), version);
}

TEST(BatchNormTrain, IsExactWhenTheMeanIsFarFromZero) {
  const Tensor noise = Numbers({8, 4, 16, 16}, DType::kF32, 1);
  Doubles values = ToDoubles(noise);
  for (double& value : values) value = 1000.0 + value * 0.5;
  for (MemoryFormat format :
       {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
    const Tensor x = Put(
        Tensor::From(values, noise.shape()).To(DType::kF32).Contiguous(format));
    const Reference reference(x.shape(), ToDoubles(x), {1, 1, 1, 1},
                              {0, 0, 0, 0}, 1e-5);
    const BatchNormResult result =
        BatchNormTrain(x, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), {});
    Doubles inverse;
    for (size_t c = 0; c < 4; ++c) inverse.push_back(reference.inverse(c));
    ExpectNear(result.inverse_stddev, {4}, inverse, 1e-5, "deviation");
  }
}

TEST(BatchNormBackward, EqualsItsDefinition) {
  for (const Case& c : Cases()) {
    const Inputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    const BatchNormResult forward = BatchNormTrain(
        in.x, in.gamma, in.beta, in.residual, Tensor(), Tensor(), options);
    const Reference reference = ReferenceOf(c, in, options.eps);
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
  for (const Case& c : Cases()) {
    const Inputs in(c);
    const BatchNormOptions options = {.eps = 1e-3, .relu = c.relu};
    Reference reference = ReferenceOf(c, in, options.eps);
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
    const Case c = {{24, 64, 20, 20}, format, DType::kF32, true, true};
    const Inputs in(c);
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
  const Case c = {{4, 6, 3, 5}, MemoryFormat::kContiguous, DType::kF32, true};
  const Inputs in(c);
  const Tensor wide = Put(Numbers({4, 6, 3, 10}, DType::kF32, 1));
  const Tensor x = wide.Slice(3, 0, 10, 2);
  // Between other numbers, which must stay.
  const Tensor rows = Put(Tensor::Ones({6, 2}));
  const Tensor running = rows.Select(1, 0);
  const BatchNormOptions options = {.relu = true};
  const BatchNormResult result = BatchNormTrain(x, in.gamma, in.beta, Tensor(),
                                                running, Tensor(), options);
  const Reference reference(c.shape, ToDoubles(x), ToDoubles(in.gamma),
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

TEST(BatchNormTrain, CountsItsBatches) {
  const Tensor x = test::Put(Numbers({4, 3, 5, 5}, DType::kF32, 1));
  const Tensor batches =
      Tensor::Zeros({}, {.dtype = DType::kI64, .device = x.device()});
  for (int i = 0; i < 3; ++i)
    BatchNormTrain(x, {}, {}, {}, {}, {}, {}, batches);
  EXPECT_EQ(batches.Item(), 3);
  EXPECT_EQ(batches.version(), 3u);
  const Tensor wrong = Tensor::Zeros({}, {.device = x.device()});
  EXPECT_THAT(
      ErrorOf([&] { BatchNormTrain(x, {}, {}, {}, {}, {}, {}, wrong); }),
      HasSubstr("expected the count of batches i64[]"));
}

}  // namespace
}  // namespace baton::ops
