// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/any.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/status.h"
#include "optim/kinds.h"

namespace baton::optim {
namespace {

using ::testing::HasSubstr;

std::string WhyNot(const std::string& text) {
  const auto any = AnyOptions::Parse(text);
  EXPECT_TRUE(absl::IsInvalidArgument(any.status())) << text;
  return std::string(any.status().message());
}

TEST(AnyOptions, TakeTheDefaultsOfTheirKind) {
  EXPECT_EQ(AnyOptions::Parse("adagrad")->lr, AdagradOptions().lr);
  const auto adamw = AnyOptions::Parse("adamw");
  const auto rule = std::get<ops::AdamRule>(ops::StepRule(*adamw));
  EXPECT_TRUE(rule.decoupled_weight_decay);
  EXPECT_EQ(rule.weight_decay, AdamWOptions().weight_decay);
}

TEST(AnyOptions, SetOptionsByTheirNames) {
  const auto any =
      AnyOptions::Parse("sgd,lr=0.5,momentum=0.9,nesterov=true,maximize=1");
  ASSERT_TRUE(any.ok()) << any.status();
  const auto rule = std::get<ops::SgdRule>(ops::StepRule(*any));
  EXPECT_EQ(rule.lr, 0.5);
  EXPECT_EQ(rule.momentum, 0.9);
  EXPECT_TRUE(rule.nesterov);
  EXPECT_TRUE(rule.maximize);
  EXPECT_EQ(any->state_tensors(), 1);
  EXPECT_EQ(AnyOptions::Parse("sgd")->state_tensors(), 0);
  EXPECT_EQ(AnyOptions::Parse("adam,amsgrad=1")->state_tensors(), 3);
}

TEST(AnyOptions, SayWhatThereIs) {
  EXPECT_THAT(WhyNot("sdg"),
              HasSubstr("no optimizer 'sdg'; there are sgd, adam, adamw"));
  EXPECT_THAT(WhyNot("adam,momentum=0.9"),
              HasSubstr("adam has no option momentum; it has lr, beta1, beta2, "
                        "eps, weight_decay, amsgrad"));
  EXPECT_THAT(WhyNot("adam,eps=small"), HasSubstr("eps takes a number"));
  const AnyOptions unknown{.kind = "sdg"};
  EXPECT_THROW(Any({Variable(Tensor::Ones({2}), true)}, unknown), Error);
  const AnyOptions negative{.lr = -1};
  EXPECT_THROW(Any({Variable(Tensor::Ones({2}), true)}, negative), Error);
}

// Every kind that there is, whatever is added to the list.
TEST(Any, StepsAsTheKindThatItNames) {
  ForEachKind([](const auto& kind) {
    using O = typename std::decay_t<decltype(kind)>::Optimizer;
    Generator generator(3);
    const Tensor value = RandNormal({5, 7}, generator);
    const Tensor gradient = RandNormal({5, 7}, generator);
    Variable one(value.Clone(), true), other(value.Clone(), true);
    O plain({one}, typename O::Options());
    Any any({other}, *AnyOptions::Parse(kind.name));
    for (int step = 0; step < 3; ++step) {
      plain.Step([&](const Variable&) { return gradient; });
      any.Step([&](const Variable&) { return gradient; });
    }
    EXPECT_TRUE(ops::BitEqual(one.tensor(), other.tensor())) << kind.name;
    EXPECT_FALSE(ops::BitEqual(one.tensor(), value)) << kind.name;
  });
}

}  // namespace
}  // namespace baton::optim
