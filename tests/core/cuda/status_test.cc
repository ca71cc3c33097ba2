// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/status.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "core/cuda/memory.h"
#include "tests/support/test_device.h"

namespace baton::cuda {
namespace {

class TwoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda() || DeviceCount() < 2)
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda and two GPUs";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of their own
  }
};

int CurrentDevice() {
  int device = -1;
  Check("test", cudaGetDevice(&device));
  return device;
}

bool HasContext(int device) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  Check("test",
        cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found,
                                         12000, cudaEnableDefault, &result));
  using State = int (*)(int, unsigned int*, int*);
  unsigned int flags = 0;
  int active = -1;
  EXPECT_EQ(reinterpret_cast<State>(found)(device, &flags, &active), 0);
  return active == 1;
}

using TwoDevicesDeathTest = TwoDevices;

TEST_F(TwoDevicesDeathTest, OneThatAThreadHadByDefaultGetsNoContext) {
  EXPECT_EXIT(
      {
        { const DeviceScope scope(1); }
        std::exit(HasContext(1) && !HasContext(0) ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(TwoDevicesDeathTest, PinnedMemoryMakesNoContextBesideAnother) {
  EXPECT_EXIT(
      {
        (void)Tensor::Zeros({4}, {.device = Device::Cuda(1)});
        std::thread([] {
          (void)Tensor::Empty({1 << 20}, {.pinned = true});
        }).join();
        std::exit(HasContext(1) && !HasContext(0) ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(TwoDevicesDeathTest, OneThatAThreadHasChosenComesBack) {
  EXPECT_EXIT(
      {
        Check("test", cudaSetDevice(0));
        { const DeviceScope scope(1); }
        std::exit(CurrentDevice() == 0 ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(TwoDevices, ScopesNest) {
  const DeviceScope outer(1);
  {
    const DeviceScope inner(0);
    EXPECT_EQ(CurrentDevice(), 0);
  }
  EXPECT_EQ(CurrentDevice(), 1);
}

}  // namespace
}  // namespace baton::cuda
