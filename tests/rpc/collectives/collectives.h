// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstring>
#include <tuple>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "tests/rpc/collectives/groups.h"

namespace baton::testing {

// A group of so many members of a kind; conformance_test.cc has the cases.
class Collectives
    : public ::testing::TestWithParam<std::tuple<int, GroupKind>> {
 protected:
  int members() const { return static_cast<int>(count()); }
  size_t count() const { return groups_.size(); }
  // Moves a tensor to the device of a member.
  Tensor At(size_t rank, const Tensor& x) const {
    return x.To(groups_.device(rank));
  }
  // Returns copies, one at each member.
  std::vector<Tensor> AtAll(const std::vector<Tensor>& all) const {
    std::vector<Tensor> there;
    for (size_t i = 0; i < all.size(); ++i)
      there.push_back(At(i, all[i].Clone()));
    return there;
  }
  std::vector<Tensor> ZerosAtAll(int64_t size) const {
    return AtAll(std::vector<Tensor>(count(), Tensor::Zeros({size})));
  }
  // NCCL scales before it adds.
  bool MeansAreExact() const {
    return groups_.device(0).is_cpu() || (count() & (count() - 1)) == 0;
  }
  Groups groups_{MembersHere(std::get<0>(GetParam())), std::get<1>(GetParam())};
};

// Returns small whole numbers, whose sums are exact in any order, and which
// differ between members.
inline Tensor Numbers(int64_t count, size_t rank, DType dtype = DType::kF32) {
  Generator generator(100 + rank);
  return RandInt(-8, 9, {count}, generator).To(dtype);
}

inline std::vector<Tensor> NumbersOfAll(int64_t count, size_t members,
                                        DType dtype = DType::kF32) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < members; ++i) all.push_back(Numbers(count, i, dtype));
  return all;
}

// Returns what a reduction of these tensors must give.
inline Tensor Combined(const std::vector<Tensor>& all, rpc::ReduceOp op) {
  Tensor result = all[0].Clone();
  for (size_t i = 1; i < all.size(); ++i) {
    switch (op) {
      case rpc::ReduceOp::kSum:
      case rpc::ReduceOp::kMean:
        result = ops::Add(result, all[i]);
        break;
      case rpc::ReduceOp::kMin:
        result = ops::Minimum(result, all[i]);
        break;
      case rpc::ReduceOp::kMax:
        result = ops::Maximum(result, all[i]);
        break;
      case rpc::ReduceOp::kProduct:
        result = ops::Mul(result, all[i]);
        break;
    }
  }
  if (op == rpc::ReduceOp::kMean)
    result = ops::MulScalar(result, 1.0 / static_cast<double>(all.size()));
  return result;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  const Tensor here = a.To(Device::Cpu()), other = b.To(Device::Cpu());
  return here.nbytes() == other.nbytes() &&
         std::memcmp(here.raw_data(), other.raw_data(), here.nbytes()) == 0;
}

}  // namespace baton::testing
