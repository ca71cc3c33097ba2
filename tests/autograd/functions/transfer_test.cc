// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/transfer.h"

#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "tests/support/test_device.h"

namespace baton::autograd {
namespace {

TEST(TransferGradients, TheGradientComesBackToTheInputsDevice) {
  Variable x(Tensor::From<float>({1, 2}), true);
  const Variable there = MulScalar(To(x, test::TestDevice()), 3);
  EXPECT_EQ(there.tensor().device(), test::TestDevice());
  const Variable back = MulScalar(To(there, Device::Cpu()), 2);
  EXPECT_EQ(back.tensor().ToVector<float>(), (std::vector<float>{6, 12}));
  back.Backward(Tensor::From<float>({1, 10}));
  EXPECT_EQ(x.grad().device(), Device::Cpu());
  EXPECT_EQ(x.grad().ToVector<float>(), (std::vector<float>{6, 60}));
}

TEST(TransferGradients, TheSameDeviceIsTheSameValue) {
  const Variable x(test::Put<float>({1}), true);
  EXPECT_EQ(To(x, test::TestDevice()).id(), x.id());
}

}  // namespace
}  // namespace baton::autograd
