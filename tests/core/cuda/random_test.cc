// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/graph.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton {
namespace {

using test::ErrorOf;
using ::testing::HasSubstr;

constexpr DType kFloating[] = {DType::kF32, DType::kF64, DType::kF16,
                               DType::kBF16};

class GpuRandom : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  const Device device_ = test::TestDevice();
};

TEST_F(GpuRandom, UniformNumbersAreTheCpus) {
  for (DType dtype : kFloating) {
    Generator gpu(7), cpu(7);
    for (int64_t size : {1, 3, 4, 1023, 100'003}) {
      const Tensor there =
          Tensor::Empty({size}, {.dtype = dtype, .device = device_});
      FillUniform(there, -3, 5, gpu);
      const Tensor here = RandUniform({size}, -3, 5, cpu, dtype);
      EXPECT_TRUE(ops::BitEqual(there.To(Device::Cpu()), here))
          << Name(dtype) << " " << size;
    }
    EXPECT_EQ(gpu.state().draws, cpu.state().draws);
  }
}

TEST_F(GpuRandom, NormalNumbersAreTheCpusButForRounding) {
  const std::pair<DType, double> tolerances[] = {{DType::kF32, 5e-6},
                                                 {DType::kF64, 1e-13},
                                                 {DType::kF16, 2e-3},
                                                 {DType::kBF16, 2e-2}};
  for (const auto& [dtype, tolerance] : tolerances) {
    Generator gpu(8), cpu(8);
    const Tensor there =
        Tensor::Empty({2, 5, 70, 71}, {.dtype = dtype,
                                       .device = device_,
                                       .format = MemoryFormat::kChannelsLast});
    FillNormal(there, 1, 2, gpu);
    const Tensor here = Tensor::Empty(there.shape(), {.dtype = dtype});
    FillNormal(here, 1, 2, cpu);
    EXPECT_TRUE(
        ops::AllClose(there.To(Device::Cpu()), here, tolerance, tolerance))
        << Name(dtype);
  }
}

TEST_F(GpuRandom, MasksAreTheCpus) {
  Generator gpu(9), cpu(9);
  for (double p : {0.0, 0.3, 0.5, 1.0}) {
    EXPECT_TRUE(ops::BitEqual(
        RandBernoulli({10'001}, p, gpu, device_).To(Device::Cpu()),
        RandBernoulli({10'001}, p, cpu)));
  }
}

TEST_F(GpuRandom, EachReplayHasAnotherMask) {
  Generator generator(10);
  const Tensor x = Tensor::Ones({4096}, {.device = device_});
  const auto run = [&](int replays) {
    ops::DropoutResult result;
    (void)ops::Dropout(x, 0.5, generator);
    const Graph graph = Graph::Record(
        {device_}, [&] { result = ops::Dropout(x, 0.5, generator); });
    EXPECT_EQ(generator.ReplayedDraws(), 0u);
    std::vector<std::vector<bool>> masks;
    for (int i = 0; i < replays; ++i) {
      graph.Replay();
      masks.push_back(result.mask.ToVector<bool>());
      EXPECT_EQ(
          ops::MulScalar(result.mask.To(DType::kF32), 2).ToVector<float>(),
          result.y.ToVector<float>());
    }
    return masks;
  };
  const auto masks = run(3);
  EXPECT_NE(masks[0], masks[1]);
  EXPECT_NE(masks[1], masks[2]);
  EXPECT_NE(masks[0], masks[2]);
  EXPECT_EQ(generator.ReplayedDraws(), 3u);
  generator.SetReplayedDraws(0);
  EXPECT_EQ(run(3), masks);
}

// As one that is resumed from a checkpoint, and one that recomputes do.
TEST_F(GpuRandom, ReplaysGoOnWhereTheyWere) {
  const Tensor x = Tensor::Ones({4096}, {.device = device_});
  struct Drawn {
    Generator generator{12};
    ops::DropoutResult result;
    std::optional<Graph> graph;
    std::vector<bool> Next() {
      graph->Replay();
      return result.mask.ToVector<bool>();
    }
  };
  const auto make = [&] {
    auto drawn = std::make_unique<Drawn>();
    (void)ops::Dropout(x, 0.5, drawn->generator);
    drawn->graph = Graph::Record({device_}, [&] {
      drawn->result = ops::Dropout(x, 0.5, drawn->generator);
    });
    return drawn;
  };
  const auto undisturbed = make(), resumed = make();
  (void)undisturbed->Next();
  (void)undisturbed->Next();
  resumed->generator.SetReplayedDraws(undisturbed->generator.ReplayedDraws());
  const std::vector<bool> third = undisturbed->Next();
  EXPECT_EQ(resumed->Next(), third);
  resumed->generator.set_state(resumed->generator.state());
  EXPECT_EQ(resumed->Next(), undisturbed->Next());
  EXPECT_EQ(resumed->generator.ReplayedDraws(), 4u);
}

TEST_F(GpuRandom, TheFirstDrawIsRefusedWithinARecording) {
  Generator generator(11);
  const Tensor x = Tensor::Empty({8}, {.device = device_});
  EXPECT_THAT(ErrorOf([&] {
                Graph::Record({device_},
                              [&] { FillUniform(x, 0, 1, generator); });
              }),
              HasSubstr("run the same work once before"));
  FillUniform(x, 0, 1, generator);
  const Graph graph =
      Graph::Record({device_}, [&] { FillUniform(x, 0, 1, generator); });
  graph.Replay();
  const auto first = x.ToVector<float>();
  graph.Replay();
  EXPECT_NE(x.ToVector<float>(), first);
}

}  // namespace
}  // namespace baton
