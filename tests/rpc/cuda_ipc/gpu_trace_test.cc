// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "core/ops/arithmetic.h"
#include "rpc/tracer.h"
#include "tests/support/test_device.h"

namespace baton::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TraceLog TraceOf(const std::function<void(Tracer&)>& work) {
  const auto tracer = MakeTracerWithGpus();
  tracer->Start(10'000, Tracer::Clock::now() + std::chrono::seconds(60));
  work(*tracer);
  return tracer->Take();
}

TEST(GpuTrace, WithoutAGpuSaysSoInItsNotes) {
  if (cuda::DeviceCount() > 0) GTEST_SKIP() << "there is a GPU";
  const TraceLog log = TraceOf([](Tracer& tracer) {
    const TraceSpan span(tracer, "stage", [] { return "forward"; });
  });
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].name, "forward");
  EXPECT_THAT(log.notes, ElementsAre(HasSubstr("no work of GPUs: ")));
}

TEST(GpuTrace, HasTheKernelsOfASpanWithinIt) {
  if (!test::TestDevice().is_cuda())
    GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  const Device gpu = test::TestDevice();
  const Tensor numbers = Tensor::Ones({1 << 20}, {.device = gpu});
  (void)ops::Add(numbers, numbers);
  Synchronize(gpu);
  const TraceLog log = TraceOf([&](Tracer& tracer) {
    const TraceSpan span(tracer, "stage", [] { return "forward"; });
    for (int i = 0; i < 3; ++i) (void)ops::Add(numbers, numbers);
    Synchronize(gpu);
  });
  for (const std::string& note : log.notes) {
    if (absl::StrContains(note, "built without CUPTI")) GTEST_SKIP() << note;
  }
  EXPECT_THAT(log.notes, IsEmpty());
  const auto span = std::find_if(
      log.events.begin(), log.events.end(),
      [](const TraceEvent& event) { return event.peer == "stage"; });
  ASSERT_NE(span, log.events.end());
  int kernels = 0;
  for (const TraceEvent& event : log.events) {
    if (!absl::StartsWith(event.peer, absl::StrCat(gpu.ToString(), " stream ")))
      continue;
    ++kernels;
    EXPECT_THAT(event.name, HasSubstr("baton::cuda::"));
    EXPECT_GE(event.begin_ns, span->begin_ns);
    EXPECT_LE(event.end_ns, span->end_ns);
  }
  EXPECT_EQ(kernels, 3);
}

}  // namespace
}  // namespace baton::rpc
