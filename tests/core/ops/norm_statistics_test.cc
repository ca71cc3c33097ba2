// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/norm.h"
#include "tests/core/ops/norm_cases.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

// The statistics that batch norm computes of a batch, joins and keeps.
namespace baton::ops {
namespace {

using ::baton::test::Put;
using ::baton::testing::ErrorOf;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ::testing::HasSubstr;

TEST(JoinMoments, GivesThoseOfAllBatchesTakenAsOne) {
  for (const NormCase& c : NormCases()) {
    if (c.relu || c.residual) continue;
    const NormInputs in(c);
    const int64_t rows = c.shape[0];
    std::vector<Tensor> moments;
    for (const auto& [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {1, rows}}) {
      moments.push_back(BatchMoments(in.x.Slice(0, begin, end)).Unsqueeze(0));
    }
    const Tensor joined = JoinMoments(Cat(moments, 0));
    const NormReference reference = ReferenceOf(c, in, 0);
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
  const NormReference reference(x.shape(), ToDoubles(x), {1, 1, 1, 1},
                                {0, 0, 0, 0}, 0);
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
  const NormReference reference(x.shape(), ToDoubles(x), {1, 1, 1}, {0, 0, 0},
                                0);
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
  const NormReference reference(x.shape(), ToDoubles(x), {1, 1, 1}, {0, 0, 0},
                                0);
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
    const NormReference reference(x.shape(), ToDoubles(x), {1, 1, 1, 1},
                                  {0, 0, 0, 0}, 1e-5);
    const BatchNormResult result =
        BatchNormTrain(x, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), {});
    Doubles inverse;
    for (size_t c = 0; c < 4; ++c) inverse.push_back(reference.inverse(c));
    ExpectNear(result.inverse_stddev, {4}, inverse, 1e-5, "deviation");
  }
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
