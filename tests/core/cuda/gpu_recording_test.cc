// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/gpu_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "core/ops/arithmetic.h"
#include "tests/support/test_device.h"

namespace baton {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class GpuRecordings : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    const auto possible = StartGpuRecording(1);
    if (!possible.ok() &&
        absl::StrContains(possible.status().message(), "built without CUPTI"))
      GTEST_SKIP() << possible.status().message();
    numbers_ = Tensor::Ones({1 << 20}, {.device = device_});
    Work();  // what libraries do once is not recorded
  }
  void Work() {
    (void)ops::Add(numbers_, numbers_);
    Synchronize(device_);
  }
  static GpuActivityLog Finish(
      absl::StatusOr<std::unique_ptr<GpuRecording>> recording) {
    EXPECT_TRUE(recording.ok()) << recording.status();
    return recording.ok() ? (*recording)->Take() : GpuActivityLog{};
  }

  const Device device_ = test::TestDevice();
  Tensor numbers_;
};

TEST_F(GpuRecordings, ShowKernelsWhereTheyRan) {
  auto recording = StartGpuRecording(1000);
  const int64_t begin = NowNs();
  Work();
  const int64_t end = NowNs();
  const GpuActivityLog log = Finish(std::move(recording));
  ASSERT_THAT(log.activities, SizeIs(1));
  const GpuActivity& kernel = log.activities[0];
  EXPECT_THAT(kernel.name, HasSubstr("baton::cuda::"));
  EXPECT_EQ(kernel.device, device_.index());
  EXPECT_GE(kernel.begin_ns, begin);
  EXPECT_LT(kernel.begin_ns, kernel.end_ns);
  EXPECT_LE(kernel.end_ns, end);
  EXPECT_EQ(log.dropped, 0u);
}

TEST_F(GpuRecordings, ShowCopiesWithTheirBytes) {
  auto recording = StartGpuRecording(1000);
  const Tensor host = numbers_.To(Device::Cpu());
  (void)host.To(device_);
  Synchronize(device_);
  const GpuActivityLog log = Finish(std::move(recording));
  const auto copy = [&](const std::string& name) {
    return ::testing::AllOf(
        ::testing::Field(&GpuActivity::name, name),
        ::testing::Field(&GpuActivity::bytes, uint64_t{numbers_.nbytes()}));
  };
  EXPECT_THAT(log.activities, Contains(copy("copy to the host")));
  EXPECT_THAT(log.activities, Contains(copy("copy to the GPU")));
}

TEST_F(GpuRecordings, CountWhatDoesNotFit) {
  auto recording = StartGpuRecording(2);
  for (int i = 0; i < 10; ++i) Work();
  const GpuActivityLog log = Finish(std::move(recording));
  EXPECT_THAT(log.activities, SizeIs(2));
  EXPECT_EQ(log.dropped, 8u);
}

TEST_F(GpuRecordings, AreOneAtATimeAndShowNothingOfEarlierOnes) {
  {
    const auto first = StartGpuRecording(1000);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(StartGpuRecording(1000).status().code(),
              absl::StatusCode::kAlreadyExists);
    Work();
  }
  Work();
  EXPECT_THAT(Finish(StartGpuRecording(1000)).activities, IsEmpty());
}

TEST_F(GpuRecordings, OfManyKernelsFillBufferAfterBuffer) {
  constexpr size_t kKernels = 20'000;
  auto recording = StartGpuRecording(10 * kKernels);
  for (size_t i = 0; i < kKernels; ++i) (void)ops::Add(numbers_, numbers_);
  Synchronize(device_);
  const GpuActivityLog log = Finish(std::move(recording));
  EXPECT_EQ(log.activities.size() + log.dropped, kKernels);
  EXPECT_EQ(log.dropped, 0u);
}

}  // namespace
}  // namespace baton
