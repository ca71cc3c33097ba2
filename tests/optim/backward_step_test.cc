// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/linear.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "optim/any.h"
#include "optim/grad_scaler.h"
#include "optim/kinds.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

// Optimizer::BackwardStep.
namespace baton::optim {
namespace {

using test::Put;
using test::TestDevice;
using ::testing::HasSubstr;

constexpr int64_t kLayers = 6;
constexpr int64_t kWidth = 16;

// Products one after the other, the second weight in the last one too.
struct Net {
  explicit Net(bool sparse = false) : sparse_table(sparse) {
    Generator generator(4);
    const auto add = [&](const Shape& shape) {
      Tensor value = ops::MulScalar(RandNormal(shape, generator), 0.3);
      parameters.emplace_back(Put(value), true);
    };
    add({8, kWidth});
    for (int64_t i = 0; i < kLayers; ++i) add({kWidth, kWidth});
  }
  Variable Loss() const {
    Variable x = autograd::Embedding(parameters[0], Put<int64_t>({1, 5, 1, 3}),
                                     {.sparse = sparse_table});
    for (int64_t i = 1; i <= kLayers; ++i) {
      x = autograd::Tanh(
          autograd::Linear(x, parameters[static_cast<size_t>(i)], Variable()));
    }
    return autograd::Sum(autograd::Linear(x, parameters[2], Variable()));
  }
  const bool sparse_table;
  std::vector<Variable> parameters;
};

void ExpectEqual(const Net& one, const Net& other) {
  for (size_t i = 0; i < one.parameters.size(); ++i) {
    EXPECT_TRUE(
        ops::BitEqual(one.parameters[i].tensor(), other.parameters[i].tensor()))
        << i;
  }
}

void ExpectEqualSteps(const AnyOptions& options, bool sparse,
                      size_t bucket_bytes) {
  const Net within(sparse), after(sparse);
  Any one(within.parameters, options), other(after.parameters, options);
  for (Any* optimizer : {&one, &other}) {
    optimizer->set_clip({.value = 0.5});
    optimizer->set_schedule(LinearLr({.total = 3}));
  }
  for (int step = 0; step < 3; ++step) {
    one.BackwardStep({within.Loss()}, {}, bucket_bytes);
    other.ZeroGrad();
    after.Loss().Backward();
    other.Step();
    EXPECT_EQ(one.lr(), other.lr());
    for (const Variable& parameter : within.parameters)
      EXPECT_FALSE(parameter.gradient().defined());
    ExpectEqual(within, after);
  }
  const StateDict expected = other.ExportState();
  for (const auto& [key, tensor] : one.ExportState())
    EXPECT_TRUE(ops::BitEqual(tensor, expected.at(key))) << key;
}

TEST(BackwardStep, EqualsAStepAfterBackward) {
  constexpr size_t kOne = kWidth * kWidth * 4;
  ForEachKind([](const auto& kind) {
    for (const size_t bucket : {size_t{1}, 2 * kOne, size_t{1} << 30})
      ExpectEqualSteps(*AnyOptions::Parse(kind.name), false, bucket);
  });
  ExpectEqualSteps(*AnyOptions::Parse("sgd,momentum=0.9,nesterov=1"), false,
                   kOne);
  ExpectEqualSteps(*AnyOptions::Parse("sparse-adam"), true, kOne);
}

// When a hook sees a gradient of an early layer, those of later layers are
// stepped already, and given back.
TEST(BackwardStep, StepsAParameterBeforeTheNextGradientIsThere) {
  const Net net;
  Any sgd(net.parameters, *AnyOptions::Parse("sgd,lr=0.1"));
  const Tensor last = net.parameters[kLayers].tensor();
  const Tensor before = last.Clone();
  std::vector<std::weak_ptr<Storage>> seen;
  int64_t alive = 0;
  for (size_t i = 3; i < net.parameters.size(); ++i) {
    Variable(net.parameters[i]).AddHook([&](const Tensor& gradient) {
      alive = std::max<int64_t>(
          alive,
          std::count_if(seen.begin(), seen.end(), [](const auto& storage) {
            return !storage.expired();
          }));
      seen.push_back(gradient.storage());
      return Tensor();
    });
  }
  bool stepped = false;
  Variable(net.parameters[1]).AddHook([&](const Tensor&) {
    stepped = !ops::BitEqual(last, before);
    return Tensor();
  });
  sgd.BackwardStep({net.Loss()}, {}, 1);
  EXPECT_TRUE(stepped);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kLayers - 2));
  EXPECT_EQ(alive, 0);
}

TEST(BackwardStep, AddsTheGradientsOfOtherLeaves) {
  const Net within, after;
  std::vector<Variable> some(within.parameters.begin() + 1,
                             within.parameters.end());
  Any sgd(some, *AnyOptions::Parse("sgd,lr=0.1"));
  sgd.BackwardStep({within.Loss()});
  after.Loss().Backward();
  EXPECT_TRUE(
      ops::BitEqual(within.parameters[0].grad(), after.parameters[0].grad()));
}

TEST(BackwardStep, IsRefusedWhereAllGradientsAreToBeLookedAtFirst) {
  const Net net, untouched;
  Any sgd(net.parameters, *AnyOptions::Parse("sgd,lr=0.1"));
  const auto refusal = [&] {
    return test::ErrorOf([&] { sgd.BackwardStep({net.Loss()}); });
  };
  sgd.set_clip({.norm = 1});
  EXPECT_THAT(refusal(), HasSubstr("does not know the norm of all gradients"));
  sgd.set_clip({});
  net.Loss().Backward();  // the first of several, say
  EXPECT_THAT(refusal(), HasSubstr("has a gradient from before"));
  ExpectEqual(net, untouched);
  sgd.ZeroGrad();
  sgd.BackwardStep({net.Loss()});
  GradScaler scaler({TestDevice()}, {});
  EXPECT_THAT(test::ErrorOf([&] { scaler.Step(sgd); }),
              HasSubstr("no parameter has a gradient to look at"));
}

}  // namespace
}  // namespace baton::optim
