// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "tests/support/test_device.h"

namespace baton::dist {
namespace {

using ::testing::DoubleEq;
using ::testing::Pointwise;
using Kind = StepTrace::Kind;

TEST(StepTrace, SpansHoldTheTimesOfTheirWork) {
  const Device device = test::TestDevice();
  const Stream stream = CurrentStream(device);
  const int64_t before = rpc::Tracer::Now();
  StepTrace trace({device});
  Tensor x = Tensor::Ones({1 << 20}, {.device = device});
  for (const char* name : {"first", "second"}) {
    trace.Time({.name = name, .track = "track"}, stream,
               [&] { x = ops::AddScalar(x, 1); });
  }
  const auto spans = trace.Spans();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "first");
  EXPECT_GE(spans[0].begin_ms, 0);
  EXPECT_GT(spans[0].end_ms, spans[0].begin_ms);
  EXPECT_GE(spans[1].begin_ms, spans[0].end_ms);
  const auto log = trace.Log();
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(log.events[1].name, "second");
  EXPECT_EQ(log.events[1].peer, "track");
  EXPECT_GE(log.events[0].begin_ns, before);
  EXPECT_GE(log.events[1].begin_ns, log.events[0].end_ns);
  EXPECT_LE(log.events[1].end_ns, rpc::Tracer::Now());
}

TEST(StepTrace, OverlapIsTheShareOfCopyTimeBesideComputing) {
  struct Work {
    const char* name;
    int64_t begin_ms, end_ms;
  };
  const auto copies_of = [](const std::vector<Work>& all) {
    rpc::TraceLog log;
    for (const auto& [name, begin_ms, end_ms] : all) {
      rpc::TraceEvent& event = log.events.emplace_back();
      event.name = name;
      event.begin_ns = begin_ms * 1'000'000;
      event.end_ns = end_ms * 1'000'000;
    }
    return CopiesOf(log);
  };
  EXPECT_EQ(copies_of({}).ms, 0);
  EXPECT_EQ(copies_of({{"copy 0", 10, 20}}).overlapped, 0);
  // 2 ms before, 3 ms within, of which another device shares one.
  const CopiesTime copies = copies_of({{"copy 0", 10, 20},
                                       {"0F0", 8, 12},
                                       {"1BW0", 14, 17},
                                       {"2F1", 16, 17},
                                       {"await 2F1", 10, 16},
                                       {"conv", 0, 100}});
  EXPECT_DOUBLE_EQ(copies.ms, 10);
  EXPECT_DOUBLE_EQ(copies.overlapped, 0.5);
  EXPECT_DOUBLE_EQ(copies_of({{"copy 0", 10, 20}, {"0F0", 0, 100}}).overlapped,
                   1);
}

TEST(StepTrace, AWorkersTimesAreThoseOfItsInstructions) {
  StepTrace trace({Device::Cpu()});
  const Stream stream = CurrentStream(Device::Cpu());
  const auto time = [&](const Instruction& instruction) {
    const auto work = [] {
      const int64_t begin = rpc::Tracer::Now();
      while (rpc::Tracer::Now() < begin + 1'000'000) {
      }
    };
    trace.Time({.name = "work", .instruction = instruction}, stream, work);
  };
  const Instruction forward = {StageOp::kForward, 0, 0};
  const Instruction backward = {StageOp::kBackward, 0, 0};
  for (const Instruction& each : {forward, backward, backward}) time(each);
  trace.Time({.name = "copy", .kind = Kind::kCopy, .link = LinkEnds{0, 1}},
             stream, [] {});
  const StepTimes times = TimesOf(trace.Spans());
  ASSERT_EQ(times.instructions.size(), 2U);  // a BW in two parts
  EXPECT_GE(times.instructions[0].all, 1e-3);
  EXPECT_EQ(times.instructions[0].tail, 0);
  EXPECT_GE(times.instructions[1].all, 2e-3);
  EXPECT_GE(times.instructions[1].tail, 1e-3);
  EXPECT_NEAR(times.busy, times.instructions[0].all + times.instructions[1].all,
              1e-9);
  EXPECT_GE(times.until_end, times.busy);
  ASSERT_EQ(times.copies.size(), 1U);
  EXPECT_EQ(times.copies[0].ends.to, 1);
  EXPECT_GE(times.copies[0].seconds, 0);
  EXPECT_TRUE(TimesOf({}).instructions.empty());
}

TEST(StepTrace, TimesAndBubbleAreThoseOfTheInstructions) {
  const auto span = [](const char* text, StageOp op, int stage, int m,
                       double begin, double end) {
    return StepTrace::Span{.name = text,
                           .track = "cuda",
                           .begin_ms = begin,
                           .end_ms = end,
                           .instruction = Instruction{op, stage, m}};
  };
  const std::vector<StepTrace::Span> spans = {
      span("0F0", StageOp::kForward, 0, 0, 10, 12),
      span("1F0", StageOp::kForward, 1, 0, 12, 15),
      span("1BW0", StageOp::kBackward, 1, 0, 15, 20),
      span("1BW0", StageOp::kBackward, 1, 0, 20, 21),  // its second part
      {"copy", Kind::kCopy, "x", 0, 100},
      {"await", Kind::kReduce, "x", 30, 37},
      {"await 1F0", Kind::kWait, "x", 10, 12},
      span("0B0", StageOp::kInputGrad, 0, 0, 21, 25),
      span("0W0", StageOp::kWeightGrad, 0, 0, 24, 30)};
  // Both at one device, which began 10 ms before. Of the millisecond in which
  // two run, half counts for each.
  const StepTimes times = TimesOf(spans);
  std::vector<double> seconds;
  for (const InstructionTime& time : times.instructions)
    seconds.push_back(time.all);
  EXPECT_THAT(seconds,
              Pointwise(DoubleEq(), {2e-3, 3e-3, 6e-3, 3.5e-3, 5.5e-3}));
  EXPECT_DOUBLE_EQ(times.instructions[2].tail, 1e-3);
  EXPECT_DOUBLE_EQ(times.busy, 20e-3);
  EXPECT_DOUBLE_EQ(times.until_begin, 10e-3);
  EXPECT_EQ(times.gap, 0);
  EXPECT_DOUBLE_EQ(times.until_end, 30e-3);
  EXPECT_DOUBLE_EQ(times.awaited, 7e-3);
  const auto report = [](double busy, double until_end, double awaited = 0) {
    return GroupReport{.last = {},
                       .times = {{.instructions = {},
                                  .busy = busy,
                                  .until_end = until_end,
                                  .awaited = awaited}}};
  };
  EXPECT_DOUBLE_EQ(*BubbleOf({report(2, 10), report(4, 8)}), 0.7);
  // A worker of two devices.
  GroupReport both = report(2, 10);
  both.times.push_back(report(4, 8).times.front());
  EXPECT_DOUBLE_EQ(*BubbleOf({both}), 0.7);
  EXPECT_FALSE(BubbleOf({report(2, 10), GroupReport()}).has_value());
  EXPECT_DOUBLE_EQ(*AwaitedOf({report(2, 8, 2), report(4, 4, 1)}), 0.15);
  EXPECT_FALSE(AwaitedOf({report(2, 10), GroupReport()}).has_value());
}

}  // namespace
}  // namespace baton::dist
