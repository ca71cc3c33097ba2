// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "tests/autograd/distributed/engine_net.h"

// That kept markings are used for graphs of equal form, and no others.
namespace baton::dist {
namespace {

const std::vector<std::string> kWorkers = {"alice", "bob", "carol"};
constexpr size_t kLeaves = 6;  // two at each worker

// What a step computes of the leaves, whatever their values.
struct Program {
  struct Op {
    size_t worker;
    size_t left, right;  // values: the leaves, then what ops made
    bool scales;         // the left one by the leaf `right`; else a sum
  };
  std::vector<Op> ops;
  std::set<size_t> in_loss;
};

Program RandomProgram(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) {
    return static_cast<size_t>(random() % n);
  };
  Program program;
  const size_t ops = 1 + below(9);
  for (size_t i = 0; i < ops; ++i) {
    const bool scales = below(2) == 0;
    program.ops.push_back({below(3), below(kLeaves + i),
                           below(scales ? kLeaves : kLeaves + i), scales});
  }
  const size_t used = 1 + below(3);
  for (size_t i = 0; i < used; ++i)
    program.in_loss.insert(kLeaves + below(ops));
  return program;
}

// Whole numbers, so that sums do not depend on their order.
std::vector<Variable> RandomLeaves(std::mt19937_64& random) {
  std::vector<Variable> leaves;
  for (size_t i = 0; i < kLeaves; ++i) {
    const double value = std::vector<double>{-2, -1, 1, 2}[random() % 4];
    leaves.emplace_back(Tensor::Full({2}, value, {.dtype = DType::kF64}), true);
  }
  return leaves;
}

// `bring(worker, value)`: the value as it is at that worker.
template <typename Bring>
Variable ComputeMarked(const Program& program,
                       const std::vector<Variable>& leaves,
                       const Bring& bring) {
  struct Value {
    size_t worker;
    Variable value;
  };
  std::vector<Value> values;
  for (size_t i = 0; i < leaves.size(); ++i)
    values.push_back({i / 2, leaves[i]});
  const auto at = [&](size_t worker, size_t value) {
    return bring(values[value].worker, worker, values[value].value);
  };
  for (const Program::Op& op : program.ops) {
    const Variable left = at(op.worker, op.left);
    const Variable right = at(op.worker, op.right);
    values.push_back({op.worker, op.scales ? left * right : left + right});
  }
  Variable loss;
  for (size_t value : program.in_loss) {
    const Variable part = autograd::Sum(at(0, value));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

class MarkingTest : public EngineTest {
 protected:
  // One step in a context of its own; its gradients equal a local engine's.
  void Step(const Program& program, const BackwardOptions& options) {
    const auto leaves = RandomLeaves(random_);
    const auto context = net_.at("alice").NewContext();
    const Variable loss = ComputeMarked(
        program, leaves, [&](size_t from, size_t to, const Variable& value) {
          if (from == to) return value;
          return (*net_.Move(kWorkers[from], kWorkers[to], context->id(),
                             {value}))[0];
        });
    const absl::Status status =
        net_.at("alice").Backward(context, {loss}, {}, options).Await();
    ASSERT_TRUE(status.ok()) << status;
    ComputeMarked(program, leaves, [](size_t, size_t, const Variable& value) {
      return value;
    }).Backward();
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Tensor here = net_.StateAt(kWorkers[i / 2], context->id())
                              ->GradientOf(leaves[i])
                              .Dense();
      ASSERT_EQ(here.defined(), leaves[i].grad().defined()) << i;
      if (here.defined()) {
        EXPECT_TRUE(ops::BitEqual(here, leaves[i].grad())) << i;
      }
    }
    for (const std::string& worker : kWorkers)
      context->AddWorker(worker).IgnoreError();
    ASSERT_TRUE(net_.at("alice").Release(context->id()).Await().ok());
  }

  std::mt19937_64 random_{7};
};

TEST_F(MarkingTest, OfHundredsOfRandomGraphsIsSentOncePerForm) {
  constexpr size_t kForms = 40;
  std::set<size_t> seen;
  for (int step = 0; step < 400; ++step) {
    const size_t form = random_() % kForms;
    const int before = net_.marks;
    Step(RandomProgram(form), {});
    if (HasFatalFailure()) FAIL() << "step " << step << ", form " << form;
    if (!seen.insert(form).second) {
      EXPECT_EQ(net_.marks, before) << "step " << step << ", form " << form;
    }
  }
  EXPECT_EQ(seen.size(), kForms);
  EXPECT_GT(net_.marks, 0);
}

TEST_F(MarkingTest, OfAGraphThatUsesAnotherOfTwoValuesIsAnother) {
  const Program::Op doubles{1, 0, 0, false};
  Program first{{doubles, doubles}, {kLeaves}};
  Program second{{doubles, doubles}, {kLeaves + 1}};
  for (const Program& program : {first, second, first, second})
    Step(program, {});
  // Each time bob, and then alice.
  EXPECT_EQ(net_.marks, 4);
}

TEST_F(MarkingTest, IsAskedOfNobodyWhereAllValuesAreUsed) {
  for (int step = 0; step < 20; ++step) {
    Program program;
    for (size_t i = 0; i < 8; ++i)
      program.ops.push_back({random_() % 3, i == 0 ? 0 : kLeaves + i - 1,
                             random_() % kLeaves, random_() % 2 == 0});
    program.in_loss = {kLeaves + 7};
    Step(program, {.markings = Markings::kFast});
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
  EXPECT_EQ(net_.marks, 0);
}

TEST_F(MarkingTest, WithoutExactMarksAnUnusedValueIsWaitedFor) {
  Variable x = Leaf(2), w = Leaf(3);
  Variable there = Move("alice", "bob", x);
  Variable used = Move("bob", "alice", there * w);
  Move("bob", "alice", there * 5.0);
  const Variable loss = autograd::Sum(used);
  Future<void> fast = net_.at("alice").Backward(
      context_, {loss}, {},
      {.retain_graph = true, .markings = Markings::kFast});
  ASSERT_TRUE(Eventually([&] {
    const auto pass = net_.StateAt("bob", context_->id())->FindPass(PassId{1});
    return pass.ok() &&
           (*pass)->WaitsFor() == "the gradient of edge 2 from worker alice";
  }));
  EXPECT_FALSE(fast.ready());
  net_.StateAt("alice", context_->id())
      ->AbortPass(PassId{1}, absl::CancelledError("enough"));
  EXPECT_TRUE(absl::IsCancelled(fast.Await()));
  EXPECT_TRUE(Backward(loss).ok());
  EXPECT_GE(GradientAt("bob", w), 2);  // and what the first one had computed
}

TEST_F(MarkingTest, AGradientMayComeBeforeTheWordOfItsPass) {
  Variable x = Leaf(2), w = Leaf(3);
  Variable home = Move("bob", "alice", Move("alice", "bob", x) * w);
  GradientMessage gradient;
  gradient.context = context_->id();
  gradient.pass = PassId{1};
  gradient.edge = EdgeId{1};
  gradient.present = {1};
  gradient.grads = {Tensor::Ones({2, 2})};
  ASSERT_TRUE(net_.at("bob").OnGradient("alice", gradient).ok());
  EXPECT_EQ(GradientAt("bob", w), -1);
  FinishRequest finish;
  finish.pass.context = context_->id();
  finish.pass.pass = PassId{1};
  finish.pass.time_left = std::chrono::seconds(60);
  finish.edges = {1};
  EXPECT_TRUE(net_.at("bob").OnFinish("alice", finish).Await().ok());
  EXPECT_EQ(GradientAt("bob", w), 2);
}

TEST(SignatureTest, TellsFormsApartAndNotValues) {
  const auto of = [](const Variable& y) {
    return autograd::SignatureOf(*y.gradient_edge().node);
  };
  const auto leaf = [](double value) {
    return Variable(Tensor::Full({2}, value), true);
  };
  const Variable x = leaf(1), y = leaf(2), constant(Tensor::Ones({2}));
  EXPECT_EQ(of(x * y), of(y * leaf(3)));
  EXPECT_NE(of(x * y), of(x + y));
  EXPECT_NE(of(x * y), of(x * constant));
  EXPECT_NE(of(x * constant), of(constant * x));
  EXPECT_NE(of((x * y) * x), of(x * (y * x)));
  Variable deep = x;
  for (int i = 0; i < 200000; ++i) deep = deep * 1.0;
  EXPECT_NE(of(deep), of(deep * 1.0));
  const ContextId one{"alice", 1, 1}, two{"alice", 1, 2};
  const auto received = [](const ContextId& context, uint64_t edge,
                           const char* from, const autograd::Signature& sent) {
    return autograd::SignatureOf(
        ReceiveNode(context, EdgeId{edge}, from, 1, sent));
  };
  const auto base = received(one, 1, "bob", of(x * y));
  EXPECT_EQ(base, received(two, 1, "bob", of(x * y)));
  EXPECT_NE(base, received(one, 2, "bob", of(x * y)));
  EXPECT_NE(base, received(one, 1, "carol", of(x * y)));
  EXPECT_NE(base, received(one, 1, "bob", of(x + y)));
}

}  // namespace
}  // namespace baton::dist
