// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/status.h"

namespace baton::autograd {
namespace {

using ::testing::HasSubstr;

TEST(SavedTensor, GivesWhatWasSaved) {
  const Tensor tensor = Tensor::From<float>({1, 2});
  const SavedTensor saved(tensor);
  EXPECT_EQ(saved.Get("op").storage(), tensor.storage());
}

TEST(SavedTensor, UndefinedStaysUndefined) {
  const SavedTensor saved{Tensor()};
  EXPECT_FALSE(saved.defined());
  EXPECT_FALSE(saved.Get("op").defined());
}

TEST(SavedTensor, SeesWritesThroughViews) {
  const Tensor tensor = Tensor::From<float>({1, 2});
  const SavedTensor saved(tensor);
  tensor.Slice(0, 0, 1).Fill(3);
  const absl::Status status = CatchErrors([&] { saved.Get("op"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("[op] a tensor"));
}

TEST(SavedTensor, ReleaseFreesItAndSaysSo) {
  Tensor tensor = Tensor::From<float>({1, 2});
  const std::weak_ptr<Storage> storage = tensor.storage();
  SavedTensor saved(std::move(tensor));
  saved.Release();
  EXPECT_TRUE(storage.expired());
  EXPECT_THROW(saved.Get("op"), Error);
}

TEST(Node, HooksSkipUndefinedGradients) {
  Accumulator node({});
  int calls = 0;
  node.AddHook(0, [&](const Tensor& g) {
    ++calls;
    return g;
  });
  std::vector<Tensor> grads(1);
  node.RunHooks(grads);
  EXPECT_EQ(calls, 0);
}

TEST(Node, MayDieInAnotherNodesDestructor) {
  // A node that holds a graph of its own beside its edges.
  class Holder final : public Node {
   public:
    explicit Holder(std::shared_ptr<Node> held) : held_(std::move(held)) {}
    const char* name() const override { return "holder"; }
    std::vector<Tensor> Backward(const std::vector<Tensor>&) override {
      return {};
    }
    std::shared_ptr<Node> held_;
  };
  std::weak_ptr<Node> bottom;
  {
    auto base = std::make_shared<Holder>(nullptr);
    bottom = base;
    auto inner = std::make_shared<Holder>(nullptr);
    inner->SetEdges({{base, 0}});
    base.reset();
    auto outer = std::make_shared<Holder>(inner);
    outer->SetEdges({{inner, 0}});
  }
  EXPECT_TRUE(bottom.expired());
}

}  // namespace
}  // namespace baton::autograd
