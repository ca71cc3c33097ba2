// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "autograd/engine.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/node.h"

namespace baton::autograd {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;
using NodePtr = std::shared_ptr<Node>;

// A node whose Backward is a function of the test.
class TestNode final : public Node {
 public:
  using Function = std::function<Tensors(const Tensors&)>;
  TestNode(std::vector<Edge> edges, Function function, int outputs = 1)
      : function_(std::move(function)) {
    SetEdges(std::move(edges));
    SetNumOutputs(outputs);
  }
  const char* name() const override { return "test_node"; }
  Tensors Backward(const Tensors& grads) override { return function_(grads); }
  void Release() override { ++releases; }
  int releases = 0;

 private:
  const Function function_;
};

std::shared_ptr<TestNode> Make(std::vector<Edge> edges,
                               TestNode::Function function, int outputs = 1) {
  return std::make_shared<TestNode>(std::move(edges), std::move(function),
                                    outputs);
}

std::shared_ptr<TestNode> PassOn(const Variable& x) {
  return Make({x.gradient_edge()}, [](const Tensors& g) { return g; });
}

Tensor Value(float value) { return Tensor::From<float>({value}); }

Variable Leaf() { return Variable(Value(0), true); }

absl::Status ResultOf(GraphTask& task) {
  absl::Status result = absl::UnknownError("not done");
  task.OnDone([&](absl::Status status) { result = status; });
  return result;
}

TEST(GraphTask, RunsANodeOnceAllThatReachesItHasCome) {
  Variable x = Leaf();
  NodePtr a = PassOn(x), b = PassOn(x);
  GraphTask task({a, b}, {});
  EXPECT_TRUE(task.Feed(a, {Value(2)}).ok());
  EXPECT_FALSE(task.finished());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(task.Feed(b, {Value(3)}).ok());
  EXPECT_TRUE(task.finished());
  EXPECT_EQ(x.grad().Item(), 5);
  EXPECT_TRUE(ResultOf(task).ok());
}

TEST(GraphTask, ARootThatOthersReachWaitsForBoth) {
  Variable x = Leaf();
  NodePtr inner = PassOn(x);
  NodePtr outer = Make({{inner, 0}}, [](const Tensors& g) { return g; });
  GraphTask task({inner, outer}, {});
  EXPECT_TRUE(task.Feed(inner, {Value(2)}).ok());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(task.Feed(outer, {Value(3)}).ok());
  EXPECT_TRUE(task.finished());
  EXPECT_EQ(x.grad().Item(), 5);
}

// In f32 the sum of these depends on the order of addition.
const std::vector<float> kTouchy = {1e8f, 1, -1e8f, 3};

TEST(GraphTask, SumsHaveTheSameBitsInWhateverOrderFeedsCome) {
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    Variable x = Leaf();
    std::vector<NodePtr> roots;
    for (size_t i = 0; i < order.size(); ++i) roots.push_back(PassOn(x));
    GraphTask task(roots, {});
    for (size_t i : order)
      EXPECT_TRUE(task.Feed(roots[i], {Value(kTouchy[i])}).ok());
    EXPECT_TRUE(task.finished());
    EXPECT_EQ(static_cast<float>(x.grad().Item()),
              ((kTouchy[0] + kTouchy[1]) + kTouchy[2]) + kTouchy[3]);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GraphTask, SeveralRootsSumLikeALoopOfPasses) {
  Variable together = Leaf(), loop = Leaf();
  std::vector<NodePtr> roots;
  for (float value : kTouchy) {
    roots.push_back((together * value).gradient_edge().node);
    (loop * value).Backward();
  }
  GraphTask task(roots, {});
  for (size_t i = roots.size(); i-- > 0;)
    EXPECT_TRUE(task.Feed(roots[i], {Value(1)}).ok());
  EXPECT_EQ(together.grad().Item(), loop.grad().Item());
}

TEST(GraphTask, TakesFeedsFromManyThreads) {
  for (int round = 0; round < 50; ++round) {
    Variable x = Leaf();
    std::vector<NodePtr> roots;
    for (size_t i = 0; i < kTouchy.size(); ++i)
      roots.push_back((x * 2.0 + 1.0).gradient_edge().node);
    GraphTask task(roots, {});
    int done = 0;
    task.OnDone([&](const absl::Status& status) { done += status.ok(); });
    std::vector<std::thread> threads;
    for (size_t i = 0; i < roots.size(); ++i) {
      threads.emplace_back([&, i] {
        EXPECT_TRUE(task.Feed(roots[i], {Value(kTouchy[i])}).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(task.finished());
    const float sum =
        ((2 * kTouchy[0] + 2 * kTouchy[1]) + 2 * kTouchy[2]) + 2 * kTouchy[3];
    ASSERT_EQ(static_cast<float>(x.grad().Item()), sum);
  }
}

TEST(GraphTask, FailAmongFeedsEndsItOnce) {
  for (int round = 0; round < 50; ++round) {
    Variable x = Leaf();
    std::vector<NodePtr> roots = {PassOn(x), PassOn(x)};
    GraphTask task(roots, {});
    int done = 0;
    task.OnDone([&](const absl::Status&) { ++done; });
    std::vector<std::thread> threads;
    for (const NodePtr& root : roots) {
      threads.emplace_back(
          [&, root] { task.Feed(root, {Value(1)}).IgnoreError(); });
    }
    threads.emplace_back([&] { task.Fail(absl::AbortedError("peer")); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(task.finished());
  }
}

TEST(GraphTask, AnErrorInANodeEndsThePass) {
  Variable x = Leaf();
  int calls = 0;
  NodePtr bad = Make({x.gradient_edge()}, [&](const Tensors&) -> Tensors {
    ++calls;
    Fail("test", "went wrong", absl::StatusCode::kDataLoss);
  });
  NodePtr good = PassOn(x);
  GraphTask task({bad, good}, {});
  const absl::Status status = task.Feed(bad, {Value(1)});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "backward of test_node: [test] went wrong");
  EXPECT_EQ(task.Feed(good, {Value(1)}), status);
  EXPECT_EQ(ResultOf(task), status);
  EXPECT_TRUE(task.finished());
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
}

TEST(GraphTask, OtherExceptionsBecomeErrorsToo) {
  Variable x = Leaf();
  NodePtr bad = Make({x.gradient_edge()}, [](const Tensors&) -> Tensors {
    throw std::runtime_error("from user code");
  });
  GraphTask task({bad}, {});
  EXPECT_THAT(std::string(task.Feed(bad, {Value(1)}).message()),
              HasSubstr("from user code"));
}

TEST(GraphTask, AWrongNumberOfResultsIsAnError) {
  Variable x = Leaf();
  NodePtr bad =
      Make({x.gradient_edge()}, [](const Tensors&) { return Tensors(); });
  GraphTask task({bad}, {});
  EXPECT_THAT(std::string(task.Feed(bad, {Value(1)}).message()),
              HasSubstr("0 gradients for 1 inputs"));
}

TEST(GraphTask, FailEndsAPassThatWaits) {
  Variable x = Leaf();
  NodePtr a = PassOn(x), b = PassOn(x);
  GraphTask task({a, b}, {});
  EXPECT_TRUE(task.Feed(a, {Value(1)}).ok());
  task.Fail(absl::UnavailableError("worker left"));
  task.Fail(absl::InternalError("too late"));
  EXPECT_EQ(ResultOf(task), absl::UnavailableError("worker left"));
  EXPECT_EQ(task.Feed(b, {Value(1)}), absl::UnavailableError("worker left"));
}

TEST(GraphTask, FailFromInsideANodeStopsBeforeTheNext) {
  Variable x = Leaf();
  std::unique_ptr<GraphTask> task;
  NodePtr node = Make({x.gradient_edge()}, [&](const Tensors& g) {
    task->Fail(absl::AbortedError("enough"));
    EXPECT_FALSE(task->finished());  // this node still runs
    return g;
  });
  task = std::make_unique<GraphTask>(std::vector<NodePtr>{node},
                                     GraphTask::Options());
  EXPECT_EQ(task->Feed(node, {Value(1)}), absl::AbortedError("enough"));
  EXPECT_TRUE(task->finished());
  EXPECT_FALSE(x.grad().defined());
}

TEST(GraphTask, FailAfterTheEndChangesNothing) {
  Variable x = Leaf();
  NodePtr root = PassOn(x);
  GraphTask task({root}, {});
  EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
  task.Fail(absl::AbortedError("late"));
  EXPECT_TRUE(ResultOf(task).ok());
}

TEST(GraphTask, RefusesFeedsThatDoNotFitAndGoesOn) {
  Variable x = Leaf();
  NodePtr root = PassOn(x), other = PassOn(x), unrelated = PassOn(x);
  GraphTask task({root, other}, {});
  EXPECT_EQ(task.Feed(unrelated, {Value(1)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(task.Feed(root, {Value(1), Value(2)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
  EXPECT_EQ(task.Feed(root, {Value(1)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(task.Feed(other, {Value(1)}).ok());
  EXPECT_EQ(x.grad().Item(), 2);
  EXPECT_EQ(task.Feed(other, {Value(1)}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GraphTask, WithoutRootsIsDoneAtOnce) {
  GraphTask task({}, {});
  EXPECT_TRUE(task.finished());
  EXPECT_TRUE(ResultOf(task).ok());
}

TEST(GraphTask, DroppedUnfinishedIsCancelled) {
  absl::Status result;
  std::weak_ptr<Node> node;
  {
    Variable x = Leaf();
    NodePtr root = PassOn(x);
    node = root;
    GraphTask task({root}, {});
    task.OnDone([&](absl::Status status) { result = std::move(status); });
  }
  EXPECT_EQ(result.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(node.expired());
}

TEST(GraphTask, MayBeDroppedByItsOwnCallback) {
  Variable x = Leaf();
  NodePtr root = PassOn(x);
  auto task = std::make_unique<GraphTask>(std::vector<NodePtr>{root},
                                          GraphTask::Options());
  GraphTask copy = *task;
  task->OnDone([&](const absl::Status&) { task.reset(); });
  EXPECT_TRUE(copy.Feed(root, {Value(1)}).ok());
  EXPECT_EQ(task, nullptr);
}

TEST(GraphTask, HoldsNoNodeOnceItIsDone) {
  Variable x = Leaf();
  NodePtr root = PassOn(x);
  const std::weak_ptr<Node> watch = root;
  GraphTask task({root}, {});
  EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
  root.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(GraphTask, NodesRunEvenWhenNoGradientCame) {
  Variable x = Leaf();
  int calls = 0;
  NodePtr inner = Make({x.gradient_edge()}, [&](const Tensors& grads) {
    ++calls;
    EXPECT_FALSE(grads[0].defined());
    return Tensors(1);
  });
  NodePtr root = Make({{inner, 0}}, [](const Tensors& g) { return g; });
  GraphTask task({root}, {});
  EXPECT_TRUE(task.Feed(root, {Tensor()}).ok());
  EXPECT_TRUE(task.finished());
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
}

TEST(GraphTask, SinkSeesEachLeafOnceWithItsSum) {
  Variable x = Leaf(), y = Leaf();
  NodePtr root = (x * 2.0 + y + x).gradient_edge().node;
  std::vector<std::pair<const void*, double>> seen;
  GraphTask task({root}, {.sink = [&](const Variable& leaf, const Gradient& g) {
                   seen.emplace_back(leaf.id(), g.values().Item());
                 }});
  EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
  std::sort(seen.begin(), seen.end());
  std::vector<std::pair<const void*, double>> expected = {{x.id(), 3},
                                                          {y.id(), 1}};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(x.grad().defined());
}

TEST(GraphTask, StealsBuffersThatNobodyElseHolds) {
  Variable x = Leaf();
  std::vector<NodePtr> roots = {PassOn(x), PassOn(x)};
  GraphTask task(roots, {});
  Tensor first = Value(1);
  const void* memory = first.raw_data();
  Tensors grads;
  grads.push_back(std::move(first));
  EXPECT_TRUE(task.Feed(roots[0], std::move(grads)).ok());
  EXPECT_TRUE(task.Feed(roots[1], {Value(2)}).ok());
  EXPECT_EQ(x.grad().Item(), 3);
  EXPECT_EQ(x.grad().raw_data(), memory);
}

TEST(GraphTask, LeavesBuffersAloneThatOthersHold) {
  Variable x = Leaf();
  std::vector<NodePtr> roots = {PassOn(x), PassOn(x)};
  GraphTask task(roots, {});
  const Tensor first = Value(1), second = Value(2);
  EXPECT_TRUE(task.Feed(roots[0], {first}).ok());
  EXPECT_TRUE(task.Feed(roots[1], {second}).ok());
  EXPECT_EQ(x.grad().Item(), 3);
  EXPECT_EQ(first.Item(), 1);
  EXPECT_EQ(second.Item(), 2);
}

TEST(GraphTask, ReleasesWhatRanUnlessTheGraphIsRetained) {
  for (bool retain : {false, true}) {
    Variable x = Leaf();
    const auto root = PassOn(x);
    GraphTask task({root}, {.retain_graph = retain});
    EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
    EXPECT_EQ(root->releases, retain ? 0 : 1);
  }
}

TEST(GraphTask, ALeafThatIsGoneGetsNothing) {
  NodePtr root;
  {
    Variable x = Leaf();
    root = PassOn(x);
  }
  GraphTask task({root}, {});
  EXPECT_TRUE(task.Feed(root, {Value(1)}).ok());
  EXPECT_TRUE(task.finished());
}

TEST(GraphTask, AGradientOfTheWrongShapeIsAnError) {
  Variable x = Leaf();
  NodePtr root = PassOn(x);
  GraphTask task({root}, {});
  const absl::Status status = task.Feed(root, {Tensor::Zeros({2})});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("f32[2] does not fit its leaf f32[1]"));
}

}  // namespace
}  // namespace baton::autograd
