// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test_device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/cuda/memory.h"

namespace baton::test {
namespace {

Device Parsed() {
  const char* name = std::getenv("BATON_TEST_DEVICE");
  return Device::Parse(name == nullptr ? "cpu" : name).value();
}

class DeviceEnvironment final : public ::testing::Environment {
  void SetUp() override {
    if (TestDevice().is_cuda() && cuda::DeviceCount() <= TestDevice().index())
      GTEST_SKIP() << "no " << TestDevice().ToString() << " here: skipped";
  }
};

[[maybe_unused]] const auto* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new DeviceEnvironment);

}  // namespace

Device TestDevice() {
  static const Device device = Parsed();
  return device;
}

}  // namespace baton::test
