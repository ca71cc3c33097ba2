// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/mixed_device/bag_of_words.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "models/nn/loss.h"
#include "optim/sgd.h"
#include "tests/support/test_device.h"

namespace baton::examples {
namespace {

using test::TestDevice;

// The embedding on the CPU, the linear layer on the device under test.
BagOfWords::Options Mixed() {
  return {.words = 40, .width = 8, .classes = 4, .linear = TestDevice()};
}

TEST(BagOfWords, LivesOnTwoDevices) {
  BagOfWords model(Mixed());
  for (const auto& [name, parameter] : model.NamedParameters()) {
    EXPECT_EQ(parameter.tensor().device(),
              name == "table.weight" ? Device::Cpu() : TestDevice())
        << name;
  }
  Generator generator(1);
  const Variable logits = model.Forward(RandInt(0, 40, {3, 5}, generator));
  EXPECT_EQ(logits.shape(), Shape({3, 4}));
  EXPECT_EQ(logits.tensor().device(), TestDevice());
}

TEST(BagOfWords, TrainsBothParts) {
  BagOfWords model(Mixed());
  optim::Sgd sgd(model.Parameters(), {.lr = 1, .momentum = 0.9});
  Generator generator(1);
  const Tensor labels = RandInt(0, 4, {32}, generator);
  const Tensor ids = RandInt(4, 40, {32, 3}, generator);
  ids.Select(1, 0).CopyFrom(labels);  // which tells the class
  const auto train = [&] {
    sgd.ZeroGrad();
    const Variable loss =
        nn::CrossEntropy(model.Forward(ids), labels.To(TestDevice()));
    loss.Backward();
    for (const Variable& parameter : model.Parameters())
      EXPECT_EQ(parameter.grad().device(), parameter.tensor().device());
    sgd.Step();
    return loss.tensor().Item();
  };
  const double first = train();
  double last = 0;
  for (int step = 0; step < 60; ++step) last = train();
  EXPECT_LT(last, first / 4);
}

TEST(BagOfWords, TheDevicesDoNotChangeTheResult) {
  BagOfWords mixed(Mixed());
  BagOfWords::Options all = Mixed();
  all.linear = Device::Cpu();
  BagOfWords whole(all);
  Generator generator(1);
  const Tensor ids = RandInt(0, 40, {3, 5}, generator);
  const auto a = mixed.Forward(ids).tensor().ToVector<float>();
  const auto b = whole.Forward(ids).tensor().ToVector<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

}  // namespace
}  // namespace baton::examples
