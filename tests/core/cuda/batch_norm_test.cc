// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/cuda/batch_norm_plan.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/norm.h"
#include "tests/core/ops/reference.h"
#include "tests/support/test_device.h"

namespace baton::cuda {
namespace {

using ::baton::test::Put;
using ::baton::test::TestDevice;
using ::baton::testing::ExpectNear;
using ::baton::testing::Numbers;
using ::baton::testing::ToleranceOf;
using ops::BatchNormGradients;
using ops::BatchNormOptions;
using ops::BatchNormResult;

constexpr int kBlocks = 128;  // of an H200's clusters
constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;
constexpr MemoryFormat kPlanes = MemoryFormat::kContiguous;

// How the kernels take x: by owners of channels that keep all of it, or as much
// as fits, or in two passes.
enum class Way { kKept, kPartly, kPasses };

struct Case {
  const char* what;
  Shape shape;
  MemoryFormat format;
  Way forward, backward;
};

// In f32.
std::vector<Case> Cases() {
  return {
      {"two rows", {2, 5}, kPlanes, Way::kKept, Way::kKept},
      {"one image", {1, 8, 1, 2}, kLast, Way::kKept, Way::kKept},
      {"many channels", {6, 2500}, kPlanes, Way::kKept, Way::kKept},
      {"odd channels", {8, 37, 9, 7}, kLast, Way::kKept, Way::kKept},
      {"odd planes", {8, 37, 9, 7}, kPlanes, Way::kKept, Way::kKept},
      {"one channel", {3, 1, 5, 5}, kLast, Way::kKept, Way::kKept},
      {"clusters", {12, 64, 16, 16}, kLast, Way::kKept, Way::kKept},
      {"a block each", {7, 2048, 4, 4}, kLast, Way::kKept, Way::kKept},
      {"five dims", {3, 6, 4, 4, 4}, kPlanes, Way::kKept, Way::kKept},
      {"planes", {6, 130, 16, 16}, kPlanes, Way::kKept, Way::kKept},
      {"kept in part", {30, 512, 16, 16}, kLast, Way::kKept, Way::kPartly},
      {"too large", {60, 512, 16, 16}, kLast, Way::kPartly, Way::kPasses},
      {"one group", {20, 64, 64, 48}, kLast, Way::kPasses, Way::kPasses},
      {"two groups", {36, 128, 32, 32}, kLast, Way::kPasses, Way::kPasses},
      {"odd rows", {21, 192, 41, 43}, kLast, Way::kPasses, Way::kPasses},
      {"long odd rows", {20, 37, 41, 43}, kLast, Way::kPasses, Way::kPasses},
      {"long planes", {80, 8, 64, 68}, kPlanes, Way::kPasses, Way::kPasses},
      {"long odd planes", {90, 5, 67, 63}, kPlanes, Way::kPasses, Way::kPasses},
  };
}

Way WayOf(const Tensor& x, int tensors) {
  const auto grid = OwnerGrid(NormView("batch_norm", x, {}), kBlocks, tensors);
  if (!grid) return Way::kPasses;
  const int depth = kNormThreads >> grid->layout.lane_bits;
  const int steps =
      (grid->layout.rows + depth * grid->cluster - 1) / (depth * grid->cluster);
  return grid->kept < steps ? Way::kPartly : Way::kKept;
}

TEST(NormPlan, TakesEachOfItsWays) {
  for (const Case& c : Cases()) {
    const Tensor x = Tensor::Empty(
        c.shape, {.format = c.shape.rank() == 4 ? c.format : kPlanes});
    EXPECT_EQ(WayOf(x, 1), c.forward) << c.what;
    EXPECT_EQ(WayOf(x, 2), c.backward) << c.what;
  }
}

TEST(NormPlan, StaysWithinAMultiprocessor) {
  for (const Case& c : Cases()) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      const Tensor x = Tensor::Empty(
          c.shape,
          {.dtype = dtype, .format = c.shape.rank() == 4 ? c.format : kPlanes});
      const NormView view("batch_norm", x, {});
      const NormGrid sums = SumGrid(view, kBlocks);
      EXPECT_EQ(sums.layout.slabs % sums.cluster, 0) << c.what;
      EXPECT_LE(sums.cluster, kNormCluster) << c.what;
      EXPECT_LE(sums.partials(), kNormPartials) << c.what;
      EXPECT_LE(2 * sums.width, kNormThreads) << c.what;
      EXPECT_GE(sums.groups * sums.width, c.shape[1]) << c.what;
      const NormGrid pass = PassGrid(view, sums, 2 * kBlocks);
      EXPECT_EQ(pass.groups, sums.groups) << c.what;
      EXPECT_EQ(pass.width, sums.width) << c.what;
      if (const auto owners = OwnerGrid(view, kBlocks, 2)) {
        EXPECT_EQ(owners->layout.slabs, owners->cluster) << c.what;
        EXPECT_LE(owners->kept_bytes, size_t{208} << 10) << c.what;
        EXPECT_GE(owners->kept, 1) << c.what;
      }
    }
  }
}

class GpuBatchNorm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
};

struct Inputs {
  Inputs(const Case& c, DType dtype, bool with_residual)
      : x(Numbers(c.shape, dtype, 1, c.format)),
        dy(Numbers(c.shape, dtype, 3, c.format)),
        residual(with_residual ? Numbers(c.shape, dtype, 2, c.format)
                               : Tensor()),
        gamma(Numbers({c.shape[1]}, ParameterDType(dtype), 4)),
        beta(Numbers({c.shape[1]}, ParameterDType(dtype), 5)) {}
  static DType ParameterDType(DType dtype) {
    return dtype == DType::kF64 ? dtype : DType::kF32;
  }
  Tensor x, dy, residual, gamma, beta;
};

Tensor OnGpu(const Tensor& x) { return x.defined() ? Put(x) : x; }
Tensor Wide(const Tensor& x) {
  return x.defined() ? x.To(Device::Cpu()).To(DType::kF64) : x;
}
std::vector<double> Doubles(const Tensor& x) {
  return Wide(x).ToVector<double>();
}
void ExpectLike(const Tensor& got, const Tensor& expected, double tolerance,
                const std::string& what) {
  ExpectNear(got, expected.shape(), Doubles(expected), tolerance, what);
}

struct Results {
  BatchNormResult forward;
  BatchNormGradients gradients;
};

Results OnTheGpu(const Inputs& in, const BatchNormOptions& options) {
  Results r;
  const Tensor gamma = Put(in.gamma);
  r.forward =
      ops::BatchNormTrain(Put(in.x), gamma, Put(in.beta), OnGpu(in.residual),
                          Tensor(), Tensor(), options);
  r.gradients = ops::BatchNormBackward(Put(in.dy), Put(in.x), gamma, r.forward,
                                       in.residual.defined(), options);
  return r;
}

// On the CPU in f64; the ReLU's mask is `y`'s.
Results Exact(const Inputs& in, const Tensor& y,
              const BatchNormOptions& options) {
  Results r;
  r.forward =
      ops::BatchNormTrain(Wide(in.x), Wide(in.gamma), Wide(in.beta),
                          Wide(in.residual), Tensor(), Tensor(), options);
  BatchNormResult saved = r.forward;
  saved.y = Wide(y);
  saved.scale = saved.shift = Tensor();
  r.gradients = ops::BatchNormBackward(Wide(in.dy), Wide(in.x), Wide(in.gamma),
                                       saved, in.residual.defined(), options);
  return r;
}

void CheckAgainstCpu(const Case& c, DType dtype, bool relu, bool residual) {
  SCOPED_TRACE(std::string(c.what) + " " + Name(dtype) + (relu ? " relu" : "") +
               (residual ? " residual" : ""));
  const Inputs in(c, dtype, residual);
  const BatchNormOptions options = {.eps = 1e-3, .relu = relu};
  const Results got = OnTheGpu(in, options);
  const Results exact = Exact(in, got.forward.y, options);
  const double tolerance = 4 * ToleranceOf(dtype);
  // Sums are of f32, or better, whatever the elements are.
  const double of_sums =
      4 * std::min(ToleranceOf(dtype), ToleranceOf(DType::kF32));
  ExpectLike(got.forward.y, exact.forward.y, tolerance, "y");
  ExpectLike(got.forward.mean, exact.forward.mean, of_sums, "mean");
  ExpectLike(got.forward.inverse_stddev, exact.forward.inverse_stddev, of_sums,
             "inverse_stddev");
  ExpectLike(got.gradients.dx, exact.gradients.dx, tolerance, "dx");
  ExpectLike(got.gradients.dgamma, exact.gradients.dgamma, of_sums, "dgamma");
  ExpectLike(got.gradients.dbeta, exact.gradients.dbeta, of_sums, "dbeta");
  ASSERT_EQ(got.gradients.dresidual.defined(), residual);
  if (residual) {
    ExpectLike(got.gradients.dresidual, exact.gradients.dresidual, 0,
               "dresidual");
  }
}

TEST_F(GpuBatchNorm, EveryWayAgreesWithTheCpu) {
  for (const Case& c : Cases()) {
    CheckAgainstCpu(c, DType::kF32, true, true);
    CheckAgainstCpu(c, DType::kBF16, true, false);
    if (c.shape.numel() > 1 << 20) continue;
    CheckAgainstCpu(c, DType::kF32, true, false);
    CheckAgainstCpu(c, DType::kF32, false, true);
    CheckAgainstCpu(c, DType::kF16, true, true);
    CheckAgainstCpu(c, DType::kF64, true, true);
    CheckAgainstCpu(c, DType::kBF16, false, false);
  }
}

void ExpectSameBits(const Results& got, const Results& expected,
                    const std::string& what) {
  EXPECT_TRUE(ops::BitEqual(got.forward.y, expected.forward.y)) << what;
  EXPECT_TRUE(ops::BitEqual(got.forward.mean, expected.forward.mean)) << what;
  EXPECT_TRUE(ops::BitEqual(got.gradients.dx, expected.gradients.dx)) << what;
  EXPECT_TRUE(ops::BitEqual(got.gradients.dgamma, expected.gradients.dgamma))
      << what;
  EXPECT_TRUE(ops::BitEqual(got.gradients.dbeta, expected.gradients.dbeta))
      << what;
}

TEST_F(GpuBatchNorm, RepeatsBitForBit) {
  for (const Case& c : Cases()) {
    const Inputs in(c, DType::kF32, true);
    const Results first = OnTheGpu(in, {.relu = true});
    ExpectSameBits(OnTheGpu(in, {.relu = true}), first, c.what);
  }
}

TEST_F(GpuBatchNorm, AGraphRepeatsIt) {
  for (const Case& c : Cases()) {
    const Inputs in(c, DType::kF32, true);
    const Tensor x = Put(in.x), dy = Put(in.dy), residual = Put(in.residual);
    const Tensor gamma = Put(in.gamma), beta = Put(in.beta);
    const Tensor mean = Put(Tensor::Zeros({c.shape[1]}));
    const Tensor variance = Put(Tensor::Ones({c.shape[1]}));
    Results recorded;
    const auto step = [&] {
      recorded.forward = ops::BatchNormTrain(x, gamma, beta, residual, mean,
                                             variance, {.relu = true});
      recorded.gradients = ops::BatchNormBackward(
          dy, x, gamma, recorded.forward, true, {.relu = true});
    };
    step();
    const Results eager = recorded;
    const std::vector<double> first_mean = Doubles(mean);
    const Graph graph = Graph::Record({TestDevice()}, step);
    for (int replay = 0; replay < 2; ++replay) {
      graph.Replay();
      ExpectSameBits(recorded, eager, c.what);
    }
    // Each of three steps takes a tenth of the way that is left.
    std::vector<double> expected = first_mean;
    for (double& value : expected) value *= (1 - 0.9 * 0.9 * 0.9) / 0.1;
    ExpectNear(mean, {c.shape[1]}, expected, 1e-5, c.what);
  }
}

TEST_F(GpuBatchNorm, EvalAgreesWithTheCpu) {
  for (const Case& c : Cases()) {
    const Inputs in(c, DType::kF32, true);
    const Tensor mean = Numbers({c.shape[1]}, DType::kF32, 6);
    const Tensor variance = Tensor::Full({c.shape[1]}, 0.7);
    const BatchNormOptions options = {.relu = true};
    const Tensor y =
        ops::BatchNormEval(Put(in.x), Put(in.gamma), Put(in.beta),
                           Put(in.residual), Put(mean), Put(variance), options);
    ExpectLike(y,
               ops::BatchNormEval(Wide(in.x), Wide(in.gamma), Wide(in.beta),
                                  Wide(in.residual), Wide(mean), Wide(variance),
                                  options),
               1e-4, c.what);
    const BatchNormGradients got =
        ops::BatchNormEvalBackward(Put(in.dy), Put(in.x), y, Put(in.gamma),
                                   Put(mean), Put(variance), true, options);
    const BatchNormGradients exact = ops::BatchNormEvalBackward(
        Wide(in.dy), Wide(in.x), Wide(y), Wide(in.gamma), Wide(mean),
        Wide(variance), true, options);
    ExpectLike(got.dx, exact.dx, 1e-4, c.what);
    ExpectLike(got.dgamma, exact.dgamma, 1e-4, c.what);
    ExpectLike(got.dbeta, exact.dbeta, 1e-4, c.what);
    ExpectLike(got.dresidual, exact.dresidual, 0, c.what);
  }
}

TEST_F(GpuBatchNorm, NaNReachesWhatItShould) {
  for (const Shape& shape : {Shape({4, 8, 4, 4}), Shape({20, 64, 64, 48})}) {
    std::vector<float> values(static_cast<size_t>(shape.numel()), 0.5f);
    values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    values[0] = 1;
    const Tensor x = Put(values, shape).Contiguous(kLast);
    const BatchNormResult r = ops::BatchNormTrain(
        x, Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), {.relu = true});
    int count = 0;
    for (float value : r.inverse_stddev.ToVector<float>())
      count += std::isnan(value) ? 1 : 0;
    EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace baton::cuda
