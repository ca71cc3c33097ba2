// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pending_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/ops/norm.h"
#include "core/ops/optimizer.h"
#include "core/random.h"

namespace baton {
namespace {

using ::testing::Each;

std::vector<float> ValuesOf(const PendingRead& read) {
  return read.Pin()->ToVector<float>();
}

TEST(PendingRead, CopiesNothingWhereNobodyWrites) {
  const Tensor tensor = Tensor::Ones({100});
  const PendingRead read(tensor);
  (void)tensor.Clone();
  (void)ops::Add(tensor, tensor);
  EXPECT_EQ(read.Pin()->raw_data(), tensor.raw_data());
}

TEST(PendingRead, KeepsTheElementsThatAWriteReplaces) {
  const Tensor all = Tensor::Ones({10, 10});
  const PendingRead row(all.Select(0, 3));
  const PendingRead column(all.Slice(1, 2, 3).Transpose(0, 1));
  const PendingRead another(all.Select(0, 3));
  all.Fill(2);
  const PendingRead later(all);
  all.Fill(3);
  EXPECT_THAT(ValuesOf(row), Each(1));
  EXPECT_THAT(ValuesOf(column), Each(1));
  EXPECT_EQ(column.Pin()->shape(), Shape({1, 10}));
  EXPECT_THAT(ValuesOf(later), Each(2));
  EXPECT_THAT(all.ToVector<float>(), Each(3));
  EXPECT_EQ(another.Pin()->raw_data(), row.Pin()->raw_data());
}

TEST(PendingRead, EndsWithoutAWrite) {
  const Tensor tensor = Tensor::Ones({10});
  const void* before = nullptr;
  {
    const PendingRead read(tensor);
    before = read.Pin()->raw_data();
  }
  tensor.Fill(2);
  EXPECT_EQ(tensor.raw_data(), before);
  EXPECT_EQ(tensor.storage().use_count(), 1);
}

// Both who moves the read and who comes while it is on the move.
TEST(PendingRead, HoldsWritersOffWhileItIsPinned) {
  const Tensor tensor = Tensor::Ones({1000});
  const PendingRead read(tensor);
  auto pin = std::make_optional(read.Pin());
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i)
    writers.emplace_back([&, i] { tensor.Select(0, i).Fill(2); });
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (read.Pin() == *pin && std::chrono::steady_clock::now() < soon)
    std::this_thread::yield();
  EXPECT_THAT((*pin)->ToVector<float>(), Each(1));
  pin.reset();
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(ValuesOf(read), Each(1));
  EXPECT_EQ(tensor.Select(0, 0).Item(), 2);
  EXPECT_EQ(tensor.Select(0, 1).Item(), 2);
}

// As when a message that waited is handed to the transport.
TEST(PendingRead, KeepsTheElementsOfAReadThatBeganUnderItsPin) {
  const Tensor tensor = Tensor::Ones({1000});
  const PendingRead read(tensor);
  auto pin = std::make_optional(read.Pin());
  std::thread writer([&] { tensor.Fill(2); });
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (read.Pin() == *pin && std::chrono::steady_clock::now() < soon)
    std::this_thread::yield();
  const PendingRead next(**pin);
  pin.reset();
  writer.join();
  EXPECT_THAT(ValuesOf(next), Each(1));
  EXPECT_THAT(tensor.ToVector<float>(), Each(2));
}

// `write` writes x, among others.
void ExpectKept(const Tensor& x, const std::function<void()>& write) {
  const Tensor before = x.Clone();
  const PendingRead read(x);
  write();
  EXPECT_TRUE(ops::BitEqual(*read.Pin(), before));
  EXPECT_FALSE(ops::BitEqual(x, before));
}

TEST(PendingRead, IsRespectedByOpsThatWriteInPlace) {
  const Tensor two = Tensor::Full({4}, 2);
  const Tensor x = Tensor::Ones({4});
  Generator generator(1);
  const std::function<void()> writes[] = {
      [&] { x.Fill(2); },
      [&] { x.CopyFrom(Tensor::Ones({4})); },
      [&] { x.CopyFromAsync(two); },
      [&] { ops::AddInto(x, two, 1); },
      [&] { ops::MulInto(x, two); },
      [&] { ops::ScaleInto(x, 2); },
      [&] { ops::AddIntoMany({x}, {two}); },
      [&] { ops::CastMany({x}, {two}); },
      [&] { ops::ZeroMany({x}); },
      [&] { ops::UnscaleMany({x}, {two}, Tensor::Scalar(4), {}); },
      [&] { FillNormal(x, 0, 1, generator); },
      [&] { FillUniform(x, 0, 1, generator); },
  };
  for (size_t i = 0; i < std::size(writes); ++i) {
    SCOPED_TRACE(i);
    ExpectKept(x, writes[i]);
  }
  const Tensor not_finite = Tensor::Scalar(0);
  const Tensor infinite = Tensor::Full({4}, INFINITY);
  ExpectKept(not_finite, [&] {
    ops::UnscaleMany({x}, {infinite}, Tensor::Scalar(4), not_finite);
  });
}

TEST(PendingRead, IsRespectedByAllThatAnOptimizerWrites) {
  const Tensor grad = Tensor::Full({4}, 2);
  const auto count = [] { return Tensor::Zeros({}, {.dtype = DType::kI64}); };
  const auto lowered = [] {
    return Tensor::Zeros({4}, {.dtype = DType::kBF16});
  };
  const ops::StepTarget target{
      .value = Tensor::Ones({4}),
      .grad = grad,
      .state = {Tensor::Zeros({4}), Tensor::Zeros({4}), Tensor::Zeros({4})},
      .lowered = lowered(),
      .count = count()};
  for (const Tensor& x : {target.value, target.state[0], target.state[1],
                          target.state[2], target.lowered, target.count}) {
    SCOPED_TRACE(x.ToString());
    ExpectKept(x, [&] {
      ops::OptimizerStep({{{target}, ops::AdamRule{.lr = 1, .amsgrad = true}}});
    });
  }
}

TEST(PendingRead, IsRespectedByRunningStatistics) {
  const Tensor ones = Tensor::Ones({2});
  const Tensor mean = Tensor::Ones({2});
  const Tensor variance = Tensor::Ones({2});
  const Tensor count = Tensor::Zeros({}, {.dtype = DType::kI64});
  const Tensor batch =
      Tensor::Arange(4, DType::kI64).To(DType::kF32).Reshape({2, 2});
  for (const Tensor& x : {mean, variance, count}) {
    SCOPED_TRACE(x.ToString());
    ExpectKept(x, [&] {
      ops::BatchNormTrain(batch, ones, ones, {}, mean, variance, {}, count);
    });
    ExpectKept(x, [&] {
      ops::UpdateRunningStatistics({{.mean = mean,
                                     .variance = variance,
                                     .count = count,
                                     .batches = {batch}}});
    });
  }
}

}  // namespace
}  // namespace baton
