// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/random.h"
#include "tests/models/distributed/server/server_cluster.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;
using testing::ServerTest;
using Kind = Compression::Kind;

TEST(Compressor, TopKSendsTheLargestAndKeepsTheOthers) {
  Compressor compressor({.kind = Kind::kTopK, .keep = 0.4});
  const Gradients sent =
      compressor.Compress(Tensor::From<float>({0.5, -3, 1, 2, -1}));
  EXPECT_THAT(sent.index.ToVector<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(sent.dense.ToVector<float>(), ElementsAre(-3, 2));
  EXPECT_THAT(compressor.residual().ToVector<float>(),
              ElementsAre(0.5, 0, 1, 0, -1));
  EXPECT_THAT(Expand(sent, 5, Device::Cpu()).ToVector<float>(),
              ElementsAre(0, -3, 0, 2, 0));
}

TEST(Compressor, TopKOfEqualElementsTakesNoMoreThanItsShare) {
  Compressor compressor({.kind = Kind::kTopK, .keep = 0.5});
  EXPECT_THAT(compressor.Compress(Tensor::Ones({4})).index.ToVector<int64_t>(),
              ElementsAre(0, 1));
  // Now those are larger that have waited.
  EXPECT_THAT(compressor.Compress(Tensor::Ones({4})).index.ToVector<int64_t>(),
              ElementsAre(2, 3));
}

TEST(Compressor, WhatIsNoNumberIsSentAtOnceAndNotKept) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Kind kind : {Kind::kTopK, Kind::kBf16}) {
    Compressor compressor({.kind = kind, .keep = 0.5});
    const Gradients sent =
        compressor.Compress(Tensor::From<float>({1e-3F, kNan}));
    EXPECT_TRUE(
        std::isnan(Expand(sent, 2, Device::Cpu()).ToVector<float>()[1]));
    EXPECT_FALSE(std::isnan(compressor.residual().ToVector<float>()[1]));
  }
}

TEST(Compressor, AllThatWasPushedArrivesButForTheResidual) {
  constexpr int64_t kElements = 257;
  for (const Kind kind : {Kind::kBf16, Kind::kTopK}) {
    Compressor compressor({.kind = kind, .keep = 0.05});
    Generator generator(7);
    const Tensor given = Tensor::Zeros({kElements});
    const Tensor arrived = Tensor::Zeros({kElements});
    double largest = 0;
    for (int push = 0; push < 200; ++push) {
      const Tensor gradient = RandNormal({kElements}, generator);
      ops::AddIntoMany({given}, {gradient});
      const Gradients sent = compressor.Compress(gradient.Clone());
      ops::AddIntoMany({arrived}, {Expand(sent, kElements, Device::Cpu())});
    }
    for (int64_t i = 0; i < kElements; ++i) {
      const float left = compressor.residual().data<float>()[i];
      EXPECT_NEAR(given.data<float>()[i], arrived.data<float>()[i] + left,
                  1e-3);
      largest = std::max<double>(largest, std::abs(left));
    }
    // Without what was kept the error would grow with the pushes.
    EXPECT_LT(largest, kind == Kind::kBf16 ? 0.05 : 30);
    EXPECT_GT(largest, 0);
  }
}

// How far the values of four keys get to a target by descent; the error's
// gradient is the difference.
double ErrorAfter(ServerClient& client, const Tensor& target, int pushes) {
  const Tensor values = Tensor::ZerosLike(target);
  auto pulled = client.Pull().Await();
  for (int push = 0; push < pushes; ++push) {
    EXPECT_THAT(pulled, IsOk());
    pulled->CopyTo({values});
    pulled = client.PushPull({ops::Sub(values, target)}).Await();
  }
  EXPECT_THAT(pulled, IsOk());
  pulled->CopyTo({values});
  const Tensor error = ops::Sub(values, target);
  return ops::SquareSum({error}).Item() / ops::SquareSum({target}).Item();
}

class CompressionTest : public ServerTest,
                        public ::testing::WithParamInterface<Kind> {
 protected:
  Client JoinWith(const Compression& compression) {
    auto joined =
        ServerClient::Join(cluster_.alice(), servers_->directory(), 0,
                           {.timeout = {}, .compression = compression});
    EXPECT_THAT(joined, IsOk());
    return joined.ok() ? *std::move(joined) : nullptr;
  }
};

TEST_P(CompressionTest, PushesConvergeAllTheSame) {
  Generator generator(3);
  const Tensor target = RandNormal({40, 50}, generator);
  for (const Consistency mode :
       {Consistency::kBulkSynchronous, Consistency::kAsynchronous}) {
    ServerOptions options;
    options.mode = mode;
    options.rule = ops::SgdRule{.lr = 0.1};
    options.part_bytes = 1024;
    options.backups = true;
    Make(options, {{"x", Tensor::Zeros({40, 50})}});
    const auto client = JoinWith({.kind = GetParam(), .keep = 0.1});
    EXPECT_LT(ErrorAfter(*client, target, 150), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressionTest,
                         ::testing::Values(Kind::kNone, Kind::kBf16,
                                           Kind::kTopK),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

TEST_F(ServerTest, PartsOfGradientsThatDoNotFitAreRefused) {
  ServerOptions options;
  options.mode = Consistency::kAsynchronous;
  options.rule = ops::SgdRule{.lr = 1};
  Make(options, {{"x", Tensor::Zeros({8})}}, {"bob"});
  const RRef<ServerShard> shard = Primary(0);
  ASSERT_THAT(shard.Async<&ServerShard::Join>(TrainerId{40}, 0).Await(),
              IsOk());
  const auto push = [&](const Tensor& dense, const Tensor& index) {
    ExchangeRequest request{.trainer = TrainerId{40}, .sequence = 1};
    request.gradients = {.dense = dense, .index = index};
    request.values = true;
    return shard.Async<&ServerShard::Exchange>(request).Await();
  };
  std::vector<std::vector<int64_t>> wrong = {{1, 2}};
  // On a GPU, where to look would be to wait, what is sent there is ignored.
  if (test::TestDevice().is_cpu()) wrong.insert(wrong.end(), {{8}, {-7}});
  for (const std::vector<int64_t>& bad : wrong) {
    EXPECT_THAT(push(Tensor::Ones({1}), Tensor::From(bad)),
                Fails(absl::StatusCode::kInvalidArgument, "push"));
  }
  EXPECT_THAT(push(Tensor::Ones({8}, {.dtype = DType::kF64}), {}),
              Fails(absl::StatusCode::kInvalidArgument, "f32 or bf16[8]"));
  const auto reply = push(Tensor::Ones({1}), Tensor::From<int64_t>({3}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->values.ToVector<float>(),
              ElementsAre(0, 0, 0, -1, 0, 0, 0, 0));
}

TEST_F(ServerTest, SparseAdamStepsNoDenseKeys) {
  ServerOptions options;
  options.rule = ops::SparseAdamRule{};
  EXPECT_THAT(
      ParameterServers::Make(cluster_.alice(), {"bob"}, options,
                             {{"x", Tensor::Zeros({8})}}),
      Fails(absl::StatusCode::kInvalidArgument, "give ServerOptions::rule as"));
  EXPECT_THAT(
      ServerClient::Join(
          cluster_.alice(), {}, 0,
          {.timeout = {}, .compression = {.kind = Kind::kTopK, .keep = 0}}),
      Fails(absl::StatusCode::kInvalidArgument, "above 0"));
}

}  // namespace
}  // namespace baton::dist
