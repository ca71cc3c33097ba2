// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/loss.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/data_parallel/sync_batch_norm.h"
#include "models/nn/activation.h"
#include "models/nn/batch_norm.h"
#include "models/nn/linear.h"
#include "models/nn/sequential.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/rpc/collectives/groups.h"
#include "tests/support/golden/golden_case.h"
#include "tests/support/test_device.h"

// Data parallel against tools/golden/data_parallel.py.
namespace baton::dist {
namespace {

using testing::GoldenCase;
using testing::Groups;
using testing::IsOk;
using testing::OnEach;

constexpr char kFile[] = "data_parallel.safetensors";
constexpr int kGoldenRanks = 2;
constexpr double kTolerance = 1e-12;

void AddNet(nn::Sequential& net, Generator& generator) {
  net.Emplace<nn::Linear>(5, 6, generator);
  net.Emplace<nn::ReLU>();
  net.Emplace<nn::Linear>(6, 4, generator);
}

class GoldenBranches final : public nn::Module {
 public:
  explicit GoldenBranches(Generator& generator)
      : a_(MakeModule<nn::Linear>("a", 5, 4, generator)),
        b_(MakeModule<nn::Linear>("b", 5, 4, generator)) {
    MakeModule<nn::Linear>("c", 5, 4, generator);
  }
  Variable Forward(const Variable& x) override {
    return with_b_ ? autograd::Add(a_(x), b_(x)) : a_(x);
  }
  void UseB(bool with_b) { with_b_ = with_b; }

 private:
  nn::Linear& a_;
  nn::Linear& b_;
  bool with_b_ = true;
};

// A case, as one of its two members takes it.
class Member {
 public:
  Member(const std::string& name, nn::Module& module, size_t rank,
         Device device)
      : golden_(kFile, name, device), module_(module), rank_(rank) {
    golden_.Load(module);
  }
  bool Has(size_t step) const { return Of("x", step).defined(); }
  Variable Loss(size_t step) const {
    return autograd::CrossEntropy(module_(Variable(Of("x", step))),
                                  Of("labels", step));
  }
  void ExpectGradients() const {
    for (const auto& [name, parameter] : module_.NamedParameters()) {
      const Tensor expected = golden_["grad." + name];
      EXPECT_EQ(parameter.grad().defined(), expected.defined()) << name;
      if (expected.defined())
        testing::ExpectSame(parameter.grad(), expected, kTolerance, name);
    }
  }
  void ExpectParameters() const {
    for (const auto& [name, parameter] : module_.NamedParameters()) {
      testing::ExpectSame(parameter.tensor(), golden_["after." + name],
                          kTolerance, name);
    }
  }

 private:
  Tensor Of(const char* what, size_t step) const {
    return golden_[absl::StrCat(what, ".", rank_, ".", step)];
  }

  const GoldenCase golden_;
  nn::Module& module_;
  const size_t rank_;
};

class GoldenDataParallel : public ::testing::Test {
 protected:
  std::unique_ptr<DataParallel> Wrap(nn::Module& module, size_t rank,
                                     const DataParallelOptions& options = {}) {
    auto made = DataParallel::Make(module, groups_[rank], options);
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  void SetUp() override {
    if (groups_.size() < size_t{kGoldenRanks})
      GTEST_SKIP() << "each member needs a GPU";
  }
  const Groups groups_{testing::MembersHere(kGoldenRanks),
                       {.name = "Here", .gpus = test::TestDevice().is_cuda()}};
};

const optim::SgdOptions kSgd = {.lr = 0.1, .momentum = 0.9};

TEST_F(GoldenDataParallel, AddsUpBatchesAsPyTorchsNoSync) {
  OnEach(kGoldenRanks, [&](size_t rank) {
    Generator generator(1);
    nn::Sequential net;
    AddNet(net, generator);
    const Member member("no_sync", net, rank, groups_.device(rank));
    const auto parallel = Wrap(net, rank);
    for (size_t step = 0; step < 2; ++step)
      ASSERT_THAT(parallel->AccumulateBackward(member.Loss(step)), IsOk());
    ASSERT_THAT(parallel->Backward(member.Loss(2)), IsOk());
    member.ExpectGradients();
  });
}

TEST_F(GoldenDataParallel, TakesUnusedParametersAsPyTorchDoes) {
  OnEach(kGoldenRanks, [&](size_t rank) {
    Generator generator(1);
    GoldenBranches branches(generator);
    branches.UseB(rank == 0);
    const Member member("unused", branches, rank, groups_.device(rank));
    const auto parallel = Wrap(branches, rank);
    optim::Sgd sgd(branches.Parameters(), kSgd);
    for (size_t step = 0; member.Has(step); ++step) {
      sgd.ZeroGrad();
      ASSERT_THAT(parallel->Backward(member.Loss(step)), IsOk());
      sgd.Step();
    }
    member.ExpectGradients();
    member.ExpectParameters();
  });
}

TEST_F(GoldenDataParallel, JoinsMembersAsPyTorchDoes) {
  OnEach(kGoldenRanks, [&](size_t rank) {
    Generator generator(1);
    nn::Sequential net;
    AddNet(net, generator);
    const Member member("uneven", net, rank, groups_.device(rank));
    const auto parallel = Wrap(net, rank, {.uneven_inputs = true});
    optim::Sgd sgd(net.Parameters(), kSgd);
    for (size_t step = 0; member.Has(step); ++step) {
      sgd.ZeroGrad();
      ASSERT_THAT(parallel->Backward(member.Loss(step)), IsOk());
      sgd.Step();
    }
    ASSERT_THAT(parallel->Join(), IsOk());
    member.ExpectParameters();
  });
}

TEST_F(GoldenDataParallel, NormalisesAllBatchesAsPyTorchDoes) {
  // GPUs keep running statistics in f32.
  const bool in_f32 = test::TestDevice().is_cuda();
  const DType dtype = in_f32 ? DType::kF32 : DType::kF64;
  const double tolerance = in_f32 ? 1e-5 : kTolerance;
  OnEach(kGoldenRanks, [&](size_t rank) {
    const GoldenCase golden(kFile, "sync_batch_norm", groups_.device(rank));
    nn::BatchNorm2d norm(4);
    golden.Load(norm);
    norm.To(dtype);
    SynchroniseBatchNorms(norm, groups_[rank]);
    const auto parallel = Wrap(norm, rank);
    const auto of = [&](const char* what) {
      return golden[absl::StrCat(what, ".", rank)];
    };
    const auto expect = [&](const Tensor& got, const Tensor& wanted,
                            const std::string& what) {
      testing::ExpectSame(got.To(DType::kF64), wanted.To(DType::kF64),
                          tolerance, what);
    };
    const Variable x(of("x").To(dtype), true);
    const Variable y = norm(x);
    expect(y.tensor(), of("y"), "y");
    ASSERT_THAT(parallel->Backward({y}, {of("dy").To(dtype)}), IsOk());
    expect(x.grad(), of("dx"), "dx");
    for (const auto& [name, parameter] : norm.NamedParameters()) {
      expect(ops::MulScalar(parameter.grad(), kGoldenRanks),
             golden["grad." + name], name);
    }
    for (const auto& [name, value] : norm.StateDict())
      expect(value, golden["after." + name], name);
  });
}

}  // namespace
}  // namespace baton::dist
