// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/shard_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

constexpr int64_t kElements = 1000, kRowWidth = 3;

ShardSpec Spec() {
  ShardSpec spec;
  spec.image.values = Tensor::Ones({kElements});
  spec.options.mode = Consistency::kAsynchronous;
  spec.options.rule = ops::AdamRule{.lr = 0.1};
  for (const int64_t rows : {int64_t{0}, int64_t{20}}) {
    spec.options.tables.push_back({.name = rows == 0 ? "words" : "fixed",
                                   .width = kRowWidth,
                                   .rows = rows,
                                   .rule = ops::SparseAdamRule{.lr = 0.1}});
  }
  return spec;
}

// Of different trainers; the one before the last has not joined.
std::vector<ShardUpdate> Pushes() {
  Generator generator(4);
  std::vector<ShardUpdate> pushes;
  for (const uint64_t trainer : {1, 2, 9, 3}) {
    ShardUpdate push{.kind = ShardUpdate::Kind::kPush,
                     .trainer = TrainerId{trainer},
                     .sequence = 1};
    if (trainer != 2)  // which pushes rows alone
      push.gradients.dense = RandNormal({kElements}, generator);
    for (const int32_t table : {0, 1}) {
      push.gradients.rows.push_back(
          {.table = table,
           .keys = Tensor::From<int64_t>({5, static_cast<int64_t>(trainer), 5}),
           .gradients = RandNormal({3, kRowWidth}, generator)});
    }
    pushes.push_back(std::move(push));
  }
  return pushes;
}

void Join(ShardState& state) {
  for (const uint64_t trainer : {1, 2, 3}) {
    ShardUpdate join{.kind = ShardUpdate::Kind::kJoin,
                     .trainer = TrainerId{trainer}};
    join.joining.rank = static_cast<int64_t>(trainer);
    state.Apply(join);
  }
}

TEST(ShardState, PushesAppliedTogetherHaveTheBitsOfOneAfterTheOther) {
  ShardState together(Spec(), test::TestDevice());
  ShardState in_turn(Spec(), test::TestDevice());
  Join(together);
  Join(in_turn);
  together.ApplyPushes(Pushes());
  for (const ShardUpdate& push : Pushes()) in_turn.Apply(push);
  const ShardImage one = together.Image(), other = in_turn.Image();
  EXPECT_EQ(one.version, 3);
  EXPECT_EQ(other.version, 3);
  EXPECT_EQ(one.steps, 2);
  EXPECT_EQ(one.steps, other.steps);
  EXPECT_EQ(one.values.ToVector<float>(), other.values.ToVector<float>());
  EXPECT_NE(one.values.ToVector<float>(),
            Spec().image.values.ToVector<float>());
  for (size_t slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(one.slots[slot].ToVector<float>(),
              other.slots[slot].ToVector<float>());
  }
  const Tensor keys = Tensor::From<int64_t>({1, 2, 3, 5, 9});
  const ExchangeRequest rows{
      .rows = {{.table = 0, .keys = keys}, {.table = 1, .keys = keys}}};
  const auto read = [&](const ShardState& state, size_t table) {
    return state.Read(rows, Tensor::Empty).rows[table].ToVector<float>();
  };
  for (const size_t table : {0, 1}) {
    EXPECT_EQ(one.tables[table].steps, 3);
    EXPECT_EQ(read(together, table), read(in_turn, table));
  }
  for (const uint64_t trainer : {1, 2, 3})
    EXPECT_EQ(together.clocks().Find(TrainerId{trainer})->sequence, 1);
}

// So that on a GPU they reuse the memory of those that were read before, which
// other processes have opened.
TEST(ShardState, RowsAreReadOnOneStreamByAnyThread) {
  const ShardState state(Spec(), test::TestDevice());
  std::vector<Stream> streams;
  const auto read = [&] {
    const ExchangeRequest fixed{
        .rows = {{.table = 1, .keys = test::Put<int64_t>({1, 2})}}};
    state.Read(fixed, [&](const Shape& shape, const TensorOptions& options) {
      streams.push_back(CurrentStream(options.device));
      return Tensor::Empty(shape, options);
    });
  };
  read();
  std::thread(read).join();
  ASSERT_EQ(streams.size(), 2);
  EXPECT_EQ(streams[0].device(), test::TestDevice());
  EXPECT_EQ(streams[0], streams[1]);
}

}  // namespace
}  // namespace baton::dist
