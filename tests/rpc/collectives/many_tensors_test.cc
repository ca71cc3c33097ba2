// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <vector>

#include "tests/rpc/collectives/collectives.h"

// What every implementation must do with several tensors as one.
namespace baton::testing {
namespace {

using rpc::ProcessGroup;
using rpc::ReduceOp;

// Of a few bytes, of several parts, and of none.
std::vector<int64_t> SizesTogether(bool large) {
  if (large) return {70'001, 0, 3, 200'000};
  return {5, 1, 0, 70};
}

TEST_P(Collectives, SeveralTensorsAreReducedAndBroadcastAsOne) {
  for (const bool large : {false, true}) {
    const std::vector<int64_t> sizes = SizesTogether(large);
    const int root = members() - 1;
    std::vector<std::vector<Tensor>> reduced(count()), given(count());
    std::vector<Tensor> sums, roots;
    for (const int64_t size : sizes) {
      const auto all = NumbersOfAll(size, count());
      sums.push_back(Combined(all, ReduceOp::kSum));
      roots.push_back(all.back());
      for (size_t i = 0; i < count(); ++i) {
        reduced[i].push_back(At(i, all[i].Clone()));
        given[i].push_back(At(i, all[i].Clone()));
      }
    }
    const uint64_t version = reduced[0][0].version();
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.AllReduceMany(reduced[rank]);
    });
    groups_.ExpectEach([&](size_t rank, ProcessGroup& group) {
      return group.BroadcastMany(given[rank], root);
    });
    EXPECT_GT(reduced[0][0].version(), version);
    for (size_t i = 0; i < count(); ++i) {
      for (size_t part = 0; part < sizes.size(); ++part) {
        EXPECT_TRUE(SameBits(reduced[i][part], sums[part])) << i << part;
        EXPECT_TRUE(SameBits(given[i][part], roots[part])) << i << part;
      }
    }
  }
  EXPECT_THAT(groups_[0]->AllReduceMany({}).Await(), IsOk());
}

TEST_P(Collectives, SeveralTensorsAsOneAreOfOneKindAndOfTheSameSizes) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const Tensor x = At(0, Tensor::Zeros({4}));
  ProcessGroup& group = *groups_[0];
  EXPECT_THAT(group.AllReduceMany({x, Tensor()}).Await(),
              Fails(code, "undefined"));
  EXPECT_THAT(group.AllReduceMany({x, x.To(DType::kF64)}).Await(),
              Fails(code, "one dtype"));
  EXPECT_THAT(group.BroadcastMany({x, x.Slice(0, 0, 4, 2)}).Await(),
              Fails(code, "dense"));
  if (x.device().is_cuda()) {
    EXPECT_THAT(group.AllReduceMany({x, Tensor::Zeros({4})}).Await(),
                Fails(code, "one device"));
    return;  // NCCL does not see that sizes differ
  }
  if (members() == 1) return;
  const auto results = groups_.Each([&](size_t rank, ProcessGroup& each) {
    const int64_t size = rank == 0 ? 3 : 4;
    return each.AllReduceMany(
        {Tensor::Zeros({size}), Tensor::Zeros({7 - size})});
  });
  for (const absl::Status& status : results) {
    EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition,
                              "all_reduce sum f32[4 + 3]"));
  }
}

}  // namespace
}  // namespace baton::testing
