// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/gpu_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "core/gpu_recording.h"

namespace baton {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// As if the other clock had been read in the middle of `took`.
ClockReading Read(int64_t steady, int64_t other, int64_t took) {
  return {steady - took / 2, other, steady + took / 2};
}

TEST(ClockLine, GoesThroughTheFastestReadings) {
  const ClockLine line(
      {Read(1'000'900, 70'000, 2'000), Read(1'000'000, 70'000, 100)},
      {Read(5'000'000, 4'070'000, 100), Read(5'004'000, 4'070'000, 9'000)});
  EXPECT_EQ(line.begin_ns(), 70'000);
  EXPECT_EQ(line.ToSteady(70'000), 1'000'000);
  EXPECT_EQ(line.ToSteady(4'070'000), 5'000'000);
  EXPECT_EQ(line.ToSteady(2'070'000), 3'000'000);
}

TEST(ClockLine, FollowsAClockOfAnotherPace) {
  // It gains a tenth, which no real one does.
  const ClockLine line({Read(0, 500, 0)}, {Read(10'000'000, 11'000'500, 0)});
  EXPECT_EQ(line.ToSteady(500 + 5'500'000), 5'000'000);
  EXPECT_EQ(line.ToSteady(500 + 22'000'000), 20'000'000);
}

TEST(ClockLine, TrustsNoPaceOfAnInstant) {
  const ClockLine line({Read(1'000, 50, 10)}, {Read(9'000, 60, 10)});
  EXPECT_EQ(line.ToSteady(1'000'050), 1'001'000);
}

TEST(ClockLine, KeepsNanosecondsOfTimesSinceTheEpoch) {
  constexpr int64_t kEpoch = 1'795'000'000'000'000'000;
  const ClockLine line({Read(7, kEpoch, 0)},
                       {Read(60'000'000'007, kEpoch + 60'000'000'000, 0)});
  EXPECT_EQ(line.ToSteady(kEpoch + 12'345'678'901), 12'345'678'908);
}

ClockLine Same() { return ClockLine({Read(1, 1, 0)}, {Read(1, 1, 0)}); }

GpuActivityBuffer::Entry At(int64_t begin, int64_t end) {
  return {
      .device = 1, .stream = 7, .bytes = 4, .begin_ns = begin, .end_ns = end};
}

TEST(GpuActivityBuffer, GivesWhatItWasGiven) {
  GpuActivityBuffer buffer(10);
  buffer.Add("first", At(10, 20));
  buffer.Add("second", At(20, 30));
  buffer.Add("first", At(30, 30));
  const GpuActivityLog log = buffer.Take(Same());
  ASSERT_THAT(log.activities, SizeIs(3));
  EXPECT_EQ(log.activities[0].name, "first");
  EXPECT_EQ(log.activities[1].name, "second");
  EXPECT_EQ(log.activities[2].name, "first");
  EXPECT_EQ(log.activities[1].device, 1);
  EXPECT_EQ(log.activities[1].stream, 7u);
  EXPECT_EQ(log.activities[1].bytes, 4u);
  EXPECT_EQ(log.activities[1].begin_ns, 20);
  EXPECT_EQ(log.activities[1].end_ns, 30);
  EXPECT_EQ(log.dropped, 0u);
  EXPECT_THAT(buffer.Take(Same()).activities, SizeIs(0));
}

TEST(GpuActivityBuffer, CountsWhatDoesNotFit) {
  GpuActivityBuffer buffer(2);
  for (int i = 1; i <= 5; ++i) buffer.Add(std::to_string(i), At(i, i + 1));
  buffer.Drop(40);
  const GpuActivityLog log = buffer.Take(Same());
  EXPECT_THAT(log.activities, SizeIs(2));
  EXPECT_EQ(log.dropped, 43u);
}

TEST(GpuActivityBuffer, LeavesOutWhatHasNoTimesOrIsOlder) {
  GpuActivityBuffer buffer(10);
  buffer.Add("not timed", At(0, 0));
  buffer.Add("not ended", At(500, 0));
  buffer.Add("of an earlier recording", At(50, 99));
  buffer.Add("begun before", At(90, 110));
  const ClockReading begin = Read(100, 100, 0);
  const GpuActivityLog log = buffer.Take(ClockLine({begin}, {begin}));
  ASSERT_THAT(log.activities, SizeIs(1));
  EXPECT_EQ(log.activities[0].name, "begun before");
}

TEST(KernelName, IsWithoutResultArgumentsAndUnnamedNamespaces) {
  EXPECT_EQ(KernelName("_ZN5baton4cuda12_GLOBAL__N_13AddIfLi4EEEvPKT_PS3_i"),
            "baton::cuda::Add<float, 4>");
  EXPECT_EQ(KernelName("_Z4Fillfi"), "Fill");
}

TEST(KernelName, OfALibraryStaysAsItIs) {
  EXPECT_EQ(KernelName("sm90_xmma_gemm_f32(tn)"), "sm90_xmma_gemm_f32(tn)");
  EXPECT_EQ(KernelName(""), "");
}

TEST(KernelName, IsCutWhereNobodyReadsOn) {
  const std::string name = KernelName(std::string(500, 'k'));
  EXPECT_EQ(name, absl::StrCat(std::string(117, 'k'), "..."));
}

TEST(GpuRecording, SaysWhatIsMissing) {
  if (cuda::DeviceCount() > 0) GTEST_SKIP() << "there is a GPU";
  const auto recording = StartGpuRecording(10);
  EXPECT_EQ(recording.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(recording.status().message()),
              ::testing::AnyOf(HasSubstr("no GPU"), HasSubstr("CUPTI")));
}

}  // namespace
}  // namespace baton
