// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/activation.h"
#include "autograd/functions/loss.h"
#include "autograd/tensors_of.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/data_parallel/data_parallel.h"
#include "models/distributed/module.h"
#include "models/nn/linear.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/models/distributed/data_parallel/reduces_at.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/steps_of.h"
#include "tests/support/toy_stages.h"

// Replicas whose backward goes through a context, to another worker and back.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::Fails;
using testing::FragileStage;
using testing::GradientsAt;
using testing::IsOk;
using testing::OnEach;
using testing::StepsOf;

constexpr size_t kRanks = 2;
constexpr int64_t kReplicaRows = 3;  // of each replica
constexpr int64_t kContextWidth = 16;

// What a trainer has a copy of: layers before and behind one at "helper".
class Ends final : public nn::Module {
 public:
  explicit Ends(uint64_t seed)
      : generator_(seed),
        first_(MakeModule<nn::Linear>("first", 8, kContextWidth, generator_)),
        last_(MakeModule<nn::Linear>("last", kContextWidth, 4, generator_)) {}
  Variable Before(const Variable& x) { return autograd::Relu(first_(x)); }
  Variable LossOf(const Variable& x, const Tensor& labels) {
    return autograd::CrossEntropy(last_(x), labels);
  }

 private:
  Generator generator_;
  nn::Linear& first_;
  nn::Linear& last_;
};

Tensor ContextInputs() {
  Generator generator(1);
  return RandNormal({kRanks * kReplicaRows, 8}, generator);
}
Tensor ContextLabels() {
  Generator generator(2);
  return RandInt(0, 4, {kRanks * kReplicaRows}, generator);
}
Tensor ShareOfContext(const Tensor& all, size_t rank) {
  const auto begin = static_cast<int64_t>(rank) * kReplicaRows;
  return all.Slice(0, begin, begin + kReplicaRows).Contiguous();
}

class ContextBackward : public ::testing::Test {
 protected:
  using Group = std::shared_ptr<rpc::ProcessGroup>;

  ContextBackward() {
    testing::ClusterOptions options;
    options.names = {"t0", "t1", "helper"};
    options.fill = [](rpc::Registry& registry) {
      Register(registry);
      RegisterModule<DenseStage>(registry);
      RegisterModule<FragileStage>(registry);
      registry.AddFunction<&GradientsAt<DenseStage>>();
      rpc::RegisterCollectives(registry);
    };
    options.on_start = [](rpc::Agent& agent) {
      Attach(agent);
      rpc::AttachCollectives(agent);
    };
    cluster_ = std::make_unique<testing::LocalCluster>(options);
    std::vector<rpc::ProcessGroup::Made> made;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      made.push_back(
          rpc::ProcessGroup::Make(agent(rank), {.members = {"t0", "t1"}}));
    }
    for (const auto& each : made) {
      const auto group = each.Await();
      EXPECT_THAT(group, IsOk());
      groups_.push_back(*group);
    }
  }
  ~ContextBackward() override {
    groups_.clear();
    cluster_->ExpectIdle();
  }

  rpc::Agent& agent(size_t rank) { return (*cluster_)[rank]; }
  // With a bucket for each parameter.
  std::unique_ptr<DataParallel> Wrap(Ends& ends, size_t rank) {
    auto made = DataParallel::Make(
        ends, groups_[rank], {.buckets = {.first = 1, .others = 1, .last = 1}});
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  Module<DenseStage> MakeMiddle(size_t rank) {
    const auto made =
        Module<DenseStage>::Create(agent(rank), "helper", kContextWidth,
                                   kContextWidth, true, 9)
            .Await();
    EXPECT_THAT(made, IsOk());
    return *made;
  }

  std::unique_ptr<testing::LocalCluster> cluster_;
  std::vector<Group> groups_;
};

TEST_F(ContextBackward, GivesTheGradientsOfOneProcessOnTheWholeBatch) {
  constexpr int kSteps = 3;
  Ends whole(5);
  DenseStage whole_middle(kContextWidth, kContextWidth, true, 9);
  optim::Sgd whole_sgd(whole.Parameters(), {.lr = 0.1});
  std::vector<std::vector<Tensor>> expected, expected_middle;  // of each step
  for (int step = 0; step < kSteps; ++step) {
    whole.ZeroGrad();
    whole_middle.ZeroGrad();
    whole.LossOf(whole_middle(whole.Before(ContextInputs())), ContextLabels())
        .Backward();
    expected.push_back(GradientsOf(whole.Parameters()));
    expected_middle.push_back(GradientsOf(whole_middle.Parameters()));
    whole_sgd.Step();
  }

  std::vector<std::vector<Tensor>> own(kRanks), of_middle(kRanks);
  std::vector<nn::StateMap> states(kRanks);
  OnEach(kRanks, [&](size_t rank) {
    Ends ends(5 + rank);  // the first one's count
    const auto parallel = Wrap(ends, rank);
    const Module<DenseStage> middle = MakeMiddle(rank);
    optim::Sgd sgd(ends.Parameters(), {.lr = 0.1});
    for (size_t step = 0; step < kSteps; ++step) {
      sgd.ZeroGrad();
      Context ctx(agent(rank));
      const auto hidden =
          middle
              .Forward(ctx, ends.Before(ShareOfContext(ContextInputs(), rank)))
              .Await();
      ASSERT_THAT(hidden, IsOk());
      const Variable loss =
          ends.LossOf(*hidden, ShareOfContext(ContextLabels(), rank));
      ASSERT_THAT(parallel->Backward(ctx, loss), IsOk());
      EXPECT_TRUE(ctx.Gradients().empty());
      own[rank] = GradientsOf(ends.Parameters());
      for (size_t i = 0; i < own[rank].size(); ++i) {
        EXPECT_TRUE(ops::AllClose(own[rank][i], expected[step][i], 1e-5, 1e-6));
      }
      const auto there =
          agent(rank)
              .Async<&GradientsAt<DenseStage>>("helper", ctx, middle.ref())
              .Await();
      ASSERT_THAT(there, IsOk());
      of_middle[rank] = *there;
      sgd.Step();
    }
    states[rank] = ends.StateDict();
    EXPECT_EQ(StepsOf(agent(rank)), "3");
  });
  for (const auto& [name, value] : states[0])
    EXPECT_TRUE(ops::BitEqual(value, states[1].at(name))) << name;
  // The helper's layer has those of each trainer by itself.
  for (size_t i = 0; i < of_middle[0].size(); ++i) {
    const Tensor sum = ops::Add(of_middle[0][i], of_middle[1][i]);
    EXPECT_TRUE(ops::AllClose(ops::MulScalar(sum, 0.5),
                              expected_middle.back()[i], 1e-5, 1e-6));
  }
}

TEST_F(ContextBackward, ReducesWhatIsThereWhileItRuns) {
  OnEach(kRanks, [&](size_t rank) {
    Ends ends(5);
    const auto parallel = Wrap(ends, rank);
    const Module<DenseStage> middle = MakeMiddle(rank);
    Context ctx(agent(rank));
    Variable x = ends.Before(ShareOfContext(ContextInputs(), rank));
    const auto reduced = testing::ReducesAt(x, *groups_[rank]);
    const auto hidden = middle.Forward(ctx, x).Await();
    ASSERT_THAT(hidden, IsOk());
    ASSERT_THAT(
        parallel->Backward(
            ctx, ends.LossOf(*hidden, ShareOfContext(ContextLabels(), rank))),
        IsOk());
    EXPECT_TRUE(*reduced);
  });
}

TEST_F(ContextBackward, LeavesOtherLeavesInTheContext) {
  OnEach(kRanks, [&](size_t rank) {
    Ends ends(5);
    const auto parallel = Wrap(ends, rank);
    Context ctx(agent(rank));
    const Variable rows(ShareOfContext(ContextInputs(), rank), true);
    const Variable loss =
        ends.LossOf(ends.Before(rows), ShareOfContext(ContextLabels(), rank));
    ASSERT_THAT(parallel->Backward(ctx, loss), IsOk());
    ASSERT_EQ(ctx.Gradients().size(), 1u);
    EXPECT_EQ(ctx.GradientOf(rows).shape(), rows.shape());
    EXPECT_FALSE(rows.grad().defined());
  });
}

TEST_F(ContextBackward, BreaksTheGroupWhereItFailsAtOneMember) {
  std::vector<absl::Status> statuses(kRanks);
  OnEach(kRanks, [&](size_t rank) {
    Ends ends(5);
    const auto parallel = Wrap(ends, rank);
    const auto fault =
        rank == 1 ? FragileStage::Fault::kBackward : FragileStage::Fault::kNone;
    const auto middle =
        Module<FragileStage>::Create(agent(rank), "helper", fault, 0).Await();
    ASSERT_THAT(middle, IsOk());
    Context ctx(agent(rank));
    const auto hidden =
        middle->Forward(ctx, ends.Before(ShareOfContext(ContextInputs(), rank)))
            .Await();
    ASSERT_THAT(hidden, IsOk());
    statuses[rank] = parallel->Backward(
        ctx, ends.LossOf(*hidden, ShareOfContext(ContextLabels(), rank)));
  });
  for (const absl::Status& status : statuses)
    EXPECT_THAT(status.message(), ::testing::HasSubstr("backward broke"));
}

}  // namespace
}  // namespace baton::dist
