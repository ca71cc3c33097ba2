// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/packed_weights.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace baton::cpu {
namespace {

// Packs by copying, and counts how often.
class Packer {
 public:
  explicit Packer(size_t max_entries) : cache_(max_entries) {}

  float Pack(const Tensor& weight, uint64_t layout = 0) {
    const Tensor packed = cache_.GetOrPack(weight, layout, [&] {
      ++packs_;
      return weight.Clone();
    });
    return packed.data<float>()[0];
  }
  int packs() const { return packs_; }
  size_t size() const { return cache_.size(); }

 private:
  PackedWeights cache_;
  int packs_ = 0;
};

TEST(PackedWeights, PacksOncePerWeightAndLayout) {
  Packer packer(8);
  const Tensor a = Tensor::Ones({4}), b = Tensor::Full({4}, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(packer.Pack(a), 1);
    EXPECT_EQ(packer.Pack(b), 2);
    EXPECT_EQ(packer.Pack(a, 1), 1);
  }
  EXPECT_EQ(packer.packs(), 3);
}

TEST(PackedWeights, TellsViewsOfOneStorageApart) {
  Packer packer(8);
  const Tensor both = Tensor::From<float>({1, 2});
  EXPECT_EQ(packer.Pack(both.Slice(0, 0, 1)), 1);
  EXPECT_EQ(packer.Pack(both.Slice(0, 1, 2)), 2);
}

TEST(PackedWeights, PacksAgainAfterAWriteAndKeepsOneEntry) {
  Packer packer(8);
  const Tensor weight = Tensor::Ones({4});
  packer.Pack(weight);
  weight.Fill(3);
  EXPECT_EQ(packer.Pack(weight), 3);
  EXPECT_EQ(packer.Pack(weight), 3);
  EXPECT_EQ(packer.packs(), 2);
  EXPECT_EQ(packer.size(), 1u);
}

TEST(PackedWeights, LetsGoOfDeadWeightsWhenItPacksTheNext) {
  Packer packer(8);
  for (int i = 0; i < 5; ++i) packer.Pack(Tensor::Ones({4}));
  const Tensor last = Tensor::Ones({4});
  packer.Pack(last);
  EXPECT_EQ(packer.size(), 1u);
}

TEST(PackedWeights, DropsTheOneUsedLongestAgo) {
  Packer packer(2);
  const Tensor a = Tensor::Ones({4}), b = Tensor::Ones({4});
  const Tensor c = Tensor::Ones({4});
  packer.Pack(a);
  packer.Pack(b);
  packer.Pack(a);
  packer.Pack(c);  // b goes
  EXPECT_EQ(packer.size(), 2u);
  packer.Pack(a);
  EXPECT_EQ(packer.packs(), 3);
  packer.Pack(b);
  EXPECT_EQ(packer.packs(), 4);
}

TEST(PackedWeights, ServesManyThreads) {
  PackedWeights cache(4);
  std::vector<Tensor> weights;
  for (int i = 0; i < 8; ++i) weights.push_back(Tensor::Full({16}, i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 400; ++i) {
        const Tensor& weight = weights[static_cast<size_t>(i % 8)];
        const Tensor packed =
            cache.GetOrPack(weight, 0, [&] { return weight.Clone(); });
        EXPECT_EQ(packed.data<float>()[0], static_cast<float>(i % 8));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.size(), 4u);
}

}  // namespace
}  // namespace baton::cpu
