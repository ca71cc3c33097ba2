// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "tests/rpc/collectives/collectives.h"

// What every implementation of the collectives must do.
namespace baton::testing {
namespace {

using rpc::ProcessGroup;
using rpc::ReduceOp;
using ::testing::ElementsAre;

// With BATON_TEST_DEVICE=cuda that of GPUs alone, of which each member has one.
std::vector<GroupKind> KindsHere() {
  if (test::TestDevice().is_cuda()) return {{.name = "Nccl", .gpus = true}};
  return {{.name = "Shared", .shared_memory = true},
          {.name = "Messages", .shared_memory = false},
          {.name = "Grpc",
           .transport = TransportKind::kGrpc,
           .shared_memory = false}};
}

// Of one element to several megabytes: less than a line, a slot, a ring's parts
// and their ends.
const int64_t kSizes[] = {1, 1000, 4097, 300'001};

std::string NameOfCase(
    const ::testing::TestParamInfo<Collectives::ParamType>& info) {
  return absl::StrCat(std::get<1>(info.param).name, std::get<0>(info.param));
}

std::vector<std::string> RecordsOf(const ProcessGroup& group) {
  std::vector<std::string> records;
  for (const rpc::FlightRecord& record : group.records())
    records.push_back(record.ToString());
  return records;
}

Tensor Part(const Tensor& all, size_t i, int64_t count) {
  const auto begin = static_cast<int64_t>(i) * count;
  return all.Slice(0, begin, begin + count);
}

TEST_P(Collectives, AllReduceGivesAllTheSameResultOfAnyOp) {
  for (const int64_t size : kSizes) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin,
                              ReduceOp::kMax, ReduceOp::kProduct}) {
      if (size > 4097 && op != ReduceOp::kMean) continue;  // enough
      const auto all = NumbersOfAll(size, count());
      const std::vector<Tensor> mine = AtAll(all);
      groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
        return group.AllReduce(mine[rank], op);
      });
      const Tensor expected = Combined(all, op);
      const bool exact = op != ReduceOp::kMean || MeansAreExact();
      for (size_t i = 0; i < count(); ++i) {
        const Tensor result = mine[i].To(Device::Cpu());
        ASSERT_TRUE(exact ? SameBits(result, expected)
                          : ops::AllClose(result, expected, 1e-5, 1e-6))
            << "rank " << i << ", " << size << " elements";
      }
    }
  }
}

TEST_P(Collectives, AllReduceTakesAnyDtype) {
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16, DType::kI32,
                            DType::kI64, DType::kU8}) {
    const auto all = NumbersOfAll(5003, count(), dtype);
    const std::vector<Tensor> mine = AtAll(all);
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.AllReduce(mine[rank]);
    });
    const Tensor expected = Combined(all, ReduceOp::kSum);
    for (size_t i = 0; i < count(); ++i)
      EXPECT_TRUE(SameBits(mine[i], expected)) << Name(dtype) << " " << i;
  }
}

// Sums of what is not exact differ by their order; not between the members.
TEST_P(Collectives, AllReduceOfAnyNumbersIsTheSameAtAllBitForBit) {
  for (const int64_t size : {int64_t{700}, int64_t{300'001}}) {
    std::vector<Tensor> mine;
    for (size_t i = 0; i < count(); ++i) {
      Generator generator(i);
      mine.push_back(RandNormal({size}, generator));
    }
    const double exact =
        Combined(mine, ReduceOp::kMean).data<float>()[size / 2];
    mine = AtAll(mine);
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.AllReduce(mine[rank], ReduceOp::kMean);
    });
    EXPECT_NEAR(mine[0].Slice(0, size / 2, size / 2 + 1).Item(), exact, 1e-6);
    for (size_t i = 1; i < count(); ++i)
      EXPECT_TRUE(SameBits(mine[i], mine[0])) << i;
  }
}

TEST_P(Collectives, BroadcastGivesAllTheElementsOfTheRoot) {
  for (const int64_t size : kSizes) {
    const int root = members() - 1;
    const auto mine = AtAll(NumbersOfAll(size, count()));
    const Tensor expected = mine[static_cast<size_t>(root)].Clone();
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.Broadcast(mine[rank], root);
    });
    for (size_t i = 0; i < count(); ++i)
      EXPECT_TRUE(SameBits(mine[i], expected)) << i << " of " << size;
  }
}

TEST_P(Collectives, ReduceChangesNothingButTheRoots) {
  for (const int64_t size : kSizes) {
    const size_t root = count() / 2;
    const auto all = NumbersOfAll(size, count());
    const auto mine = AtAll(all);
    const ReduceOp op = MeansAreExact() ? ReduceOp::kMean : ReduceOp::kMax;
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.Reduce(mine[rank], static_cast<int>(root), op);
    });
    const Tensor expected = Combined(all, op);
    for (size_t i = 0; i < count(); ++i)
      EXPECT_TRUE(SameBits(mine[i], i == root ? expected : all[i])) << i;
  }
}

TEST_P(Collectives, GatherAndAllGatherPutRankAfterRank) {
  for (const int64_t size : kSizes) {
    const auto mine = AtAll(NumbersOfAll(size, count()));
    const auto gathered = ZerosAtAll(size * members());
    const auto all = ZerosAtAll(size * members());
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.AllGather(all[rank], mine[rank]);
    });
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.Gather(rank == 0 ? gathered[0] : Tensor(), mine[rank]);
    });
    for (size_t i = 0; i < count(); ++i) {
      EXPECT_TRUE(SameBits(Part(gathered[0], i, size), mine[i])) << i;
      for (size_t at = 0; at < count(); ++at)
        EXPECT_TRUE(SameBits(Part(all[at], i, size), mine[i])) << i << at;
    }
  }
}

TEST_P(Collectives, ScatterAndReduceScatterGiveEachItsPart) {
  for (const int64_t size : kSizes) {
    const auto all = NumbersOfAll(size * members(), count());
    const auto given = AtAll(all), part = ZerosAtAll(size),
               sum = ZerosAtAll(size);
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.ReduceScatter(sum[rank], given[rank]);
    });
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.Scatter(part[rank], rank == 0 ? given[0] : Tensor());
    });
    const Tensor expected = Combined(all, ReduceOp::kSum);
    for (size_t i = 0; i < count(); ++i) {
      EXPECT_TRUE(SameBits(part[i], Part(all[0], i, size))) << i;
      EXPECT_TRUE(SameBits(sum[i], Part(expected, i, size))) << i;
    }
  }
}

TEST_P(Collectives, AllToAllTransposesTheParts) {
  for (const int64_t size : kSizes) {
    const auto in = AtAll(NumbersOfAll(size * members(), count()));
    const auto out = ZerosAtAll(size * members());
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.AllToAll(out[rank], in[rank]);
    });
    for (size_t i = 0; i < count(); ++i)
      for (size_t j = 0; j < count(); ++j)
        EXPECT_TRUE(SameBits(Part(out[i], j, size), Part(in[j], i, size)))
            << i << " from " << j;
  }
}

TEST_P(Collectives, CallsRunInOrderWithoutBeingAwaited) {
  const auto mine = AtAll(std::vector<Tensor>(count(), Tensor::Ones({2000})));
  groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
    for (int round = 0; round < 3; ++round)
      group.AllReduce(mine[rank]).OnReady([](const absl::Status&) {});
    return group.Barrier();
  });
  const auto expected = static_cast<float>(members() * members() * members());
  for (const Tensor& each : mine)
    EXPECT_EQ(each.Slice(0, 1999, 2000).Item(), expected);
}

TEST_P(Collectives, AChannelsLastTensorIsReducedAsItLies) {
  std::vector<Tensor> mine;
  for (size_t i = 0; i < count(); ++i)
    mine.push_back(Tensor::Full(
        {2, 3, 4, 5}, static_cast<double>(i),
        {.device = groups_.device(i), .format = MemoryFormat::kChannelsLast}));
  groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
    return group.AllReduce(mine[rank], ReduceOp::kMax);
  });
  for (const Tensor& each : mine) {
    EXPECT_TRUE(each.IsContiguous(MemoryFormat::kChannelsLast));
    EXPECT_EQ(each.Contiguous().ToVector<float>().back(), members() - 1);
  }
}

TEST_P(Collectives, SentTensorsAreReceivedInOrderByTag) {
  const Tensor first = At(0, Numbers(70'000, 1)), second = At(0, Numbers(3, 2));
  if (members() == 1) {
    EXPECT_THAT(groups_[0]->Send(first, 0).Await(),
                Fails(absl::StatusCode::kInvalidArgument,
                      "another member's rank, got rank 0"));
    return;
  }
  const Tensor into_first = At(count() - 1, Tensor::Zeros({70'000}));
  const Tensor into_second = At(count() - 1, Tensor::Zeros({3}));
  const Tensor other = At(count() - 1, Tensor::Zeros({3}));
  ProcessGroup& from = *groups_[0];
  ProcessGroup& to = *groups_[count() - 1];
  const int rank = members() - 1;
  const std::vector<Future<void>> calls = {
      to.Receive(other, 0, 7),    from.Send(first, rank),
      from.Send(second, rank),    to.Receive(into_first, 0),
      to.Receive(into_second, 0), from.Send(second, rank, 7)};
  for (const auto& call : calls) EXPECT_THAT(call.Await(), IsOk());
  EXPECT_THAT(
      RecordsOf(from),
      ElementsAre(
          absl::StrCat("#1 send f32[70000] to rank ", rank, ", tag 0, done"),
          absl::StrCat("#2 send f32[3] to rank ", rank, ", tag 0, done"),
          absl::StrCat("#3 send f32[3] to rank ", rank, ", tag 7, done")));
  EXPECT_THAT(RecordsOf(to),
              ElementsAre("#1 receive f32[3] from rank 0, tag 7, done",
                          "#2 receive f32[70000] from rank 0, tag 0, done",
                          "#3 receive f32[3] from rank 0, tag 0, done"));
  EXPECT_TRUE(SameBits(into_first, first));
  EXPECT_TRUE(SameBits(into_second, second));
  EXPECT_TRUE(SameBits(other, second));
}

// Of the last and the first, in this order; who is alone is both.
TEST_P(Collectives, ASubGroupIsByItself) {
  std::vector<int> ranks = {members() - 1};
  if (members() > 1) ranks.push_back(0);
  std::vector<ProcessGroup::Made> made;
  std::vector<Tensor> mine;
  int sum = 0;
  for (const int rank : ranks) {
    const auto at = static_cast<size_t>(rank);
    made.push_back(groups_[at]->Sub("some", ranks));
    mine.push_back(At(at, Tensor::Full({9}, 2 + rank)));
    sum += 2 + rank;
  }
  std::vector<std::thread> calls;
  std::vector<Groups::Group> subs;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto sub = made[i].Await();
    ASSERT_THAT(sub, IsOk());
    EXPECT_EQ((*sub)->rank(), static_cast<int>(i));
    EXPECT_EQ((*sub)->members().size(), ranks.size());
    subs.push_back(*sub);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    calls.emplace_back(
        [&, i] { EXPECT_THAT(subs[i]->AllReduce(mine[i]).Await(), IsOk()); });
  }
  groups_.ExpectEach(
      [](size_t, ProcessGroup& group) { return group.Barrier(); });
  for (std::thread& call : calls) call.join();
  for (const Tensor& each : mine) EXPECT_EQ(each.Slice(0, 8, 9).Item(), sum);
}

TEST_P(Collectives, CallsThatCannotBeAreRefusedAndBreakNothing) {
  ProcessGroup& group = *groups_[0];
  const auto code = absl::StatusCode::kInvalidArgument;
  const Tensor x = At(0, Tensor::Zeros({4})), y = At(0, Tensor::Zeros({5}));
  EXPECT_THAT(group.AllReduce(Tensor()).Await(), Fails(code, "undefined"));
  EXPECT_THAT(group.AllReduce(x.Slice(0, 0, 4, 2)).Await(),
              Fails(code, "dense"));
  EXPECT_THAT(group.AllReduce(x.To(DType::kI32), ReduceOp::kMean).Await(),
              Fails(code, "floating"));
  EXPECT_THAT(group.Broadcast(x, members()).Await(), Fails(code, "members"));
  const Tensor all = At(0, Tensor::Zeros({4 * members() + 1}));
  EXPECT_THAT(group.AllGather(all, x).Await(), Fails(code, "elements"));
  EXPECT_THAT(group.ReduceScatter(y, x).Await(), Fails(code, "elements"));
  EXPECT_THAT(group.Send(x, 0).Await(), Fails(code, "rank 0"));
  groups_.ExpectEach([](size_t, ProcessGroup& each) { return each.Barrier(); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Collectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::ValuesIn(KindsHere())),
                         NameOfCase);

const GroupKind kShared{.name = "Shared", .shared_memory = true};

TEST(CollectivesByPath, SharedMemoryIsUsedWhereItCanBeHad) {
  const Groups shared(2, kShared);
  const Groups messages(2, {.name = "Messages", .shared_memory = false});
  EXPECT_EQ(shared[0]->PathFrom(1), "shared memory");
  EXPECT_EQ(shared[0]->PathFrom(0), "self");
  EXPECT_EQ(messages[1]->PathFrom(0), "messages");
}

// Neither the ring, whose streams have fewer slots than it has stages, nor
// exchanges, of which there would be too many, are as with few members.
TEST(CollectivesByPath, ManyMembersAreServed) {
  const Groups groups(12, kShared);
  std::vector<Tensor> mine, little;
  for (size_t i = 0; i < groups.size(); ++i) {
    mine.push_back(Numbers(200'003, i));
    little.push_back(Numbers(5, i));
  }
  const Tensor sum = Combined(mine, ReduceOp::kSum);
  const Tensor little_sum = Combined(little, ReduceOp::kSum);
  groups.ExpectEach([&](size_t rank, ProcessGroup& group) {
    return group.AllReduce(mine[rank]);
  });
  groups.ExpectEach([&](size_t rank, ProcessGroup& group) {
    return group.AllReduce(little[rank]);
  });
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_TRUE(SameBits(mine[i], sum)) << i;
    EXPECT_TRUE(SameBits(little[i], little_sum)) << i;
  }
}

}  // namespace
}  // namespace baton::testing
