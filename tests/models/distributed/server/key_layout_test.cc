// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/key_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/random.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

const std::vector<DenseKey> kKeys = {{"conv", Shape({4, 3, 5, 5})},
                                     {"one", Shape({1})},
                                     {"fc", Shape({70, 11})}};

TEST(KeyLayout, SharesBytesEvenly) {
  for (const int shards : {1, 2, 3, 7}) {
    const auto layout = PlanKeys(kKeys, shards, 64 * 4);
    ASSERT_THAT(layout, testing::IsOk());
    const auto [least, most] = std::minmax_element(
        layout->shard_elements.begin(), layout->shard_elements.end());
    EXPECT_LE(*most - *least, 64);
    for (const KeyPart& part : layout->parts) EXPECT_LE(part.count, 64);
  }
}

TEST(KeyLayout, PacksAndUnpacksEveryElementOnce) {
  Generator generator(1);
  const auto layout = PlanKeys(kKeys, 3, 50 * 4);
  ASSERT_THAT(layout, testing::IsOk());
  std::vector<Tensor> given, taken;
  for (const DenseKey& key : kKeys) {
    given.push_back(RandNormal(key.shape, generator));
    taken.push_back(Tensor::Zeros(key.shape));
  }
  // One that lies in another order of elements.
  given[0] = given[0].Contiguous(MemoryFormat::kChannelsLast);
  taken[0] = taken[0].Contiguous(MemoryFormat::kChannelsLast);
  for (int shard = 0; shard < 3; ++shard) {
    const Tensor flat =
        Tensor::Empty({layout->shard_elements[static_cast<size_t>(shard)]});
    layout->Pack(shard, given, flat);
    layout->Unpack(shard, flat, taken);
  }
  for (size_t i = 0; i < given.size(); ++i)
    EXPECT_EQ(given[i].ToVector<float>(), taken[i].ToVector<float>());
}

TEST(KeyLayout, RefusesTensorsThatAreNotTheKeys) {
  const auto layout = PlanKeys(kKeys, 1, 1 << 20);
  ASSERT_THAT(layout, testing::IsOk());
  EXPECT_THAT(layout->Check({Tensor::Zeros({1})}),
              testing::Fails(absl::StatusCode::kInvalidArgument, "3 keys"));
  EXPECT_THAT(layout->Check({Tensor::Zeros({4, 3, 5, 5}), Tensor::Zeros({2}),
                             Tensor::Zeros({70, 11})}),
              testing::Fails(absl::StatusCode::kInvalidArgument, "key one"));
  EXPECT_THAT(PlanKeys({{"a", Shape({1})}, {"a", Shape({1})}}, 1, 64),
              testing::Fails(absl::StatusCode::kInvalidArgument, "two keys"));
}

TEST(KeyLayout, NeighbouringRowsGoToAllShards) {
  std::vector<int> rows(4, 0);
  for (int64_t key = -2000; key < 2000; ++key)
    ++rows[static_cast<size_t>(ShardOfRow(key, 4))];
  for (const int count : rows) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace baton::dist
