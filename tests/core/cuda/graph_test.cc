// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "core/checkpoint_writer.h"
#include "core/future.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/pending_read.h"
#include "core/storage.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "tests/support/test_device.h"

// Recordings, and what other threads do meanwhile.
namespace baton {
namespace {

class GpuGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    gpu_ = test::TestDevice();
    there_.device = gpu_;
    ones_ = Tensor::Ones({256}, there_);
  }
  static float First(const Tensor& x) {
    return x.To(Device::Cpu()).data<float>()[0];
  }

  // Work of every kind, on the thread's own stream or on those named.
  void Work(const std::optional<Stream>& stream) {
    std::optional<StreamScope> scope;
    if (stream) scope.emplace(*stream);
    const Tensor three = Tensor::Full({256}, 3).To(gpu_);
    const Tensor square = Tensor::Ones({128, 128}, there_);
    const Tensor sum = ops::Add(ops::Add(ones_, ones_), three);
    EXPECT_EQ(First(ops::Matmul(square, square)), 128);
    EXPECT_EQ(First(sum), 5);
    CurrentStream(gpu_).WaitFor(Stream::Default(gpu_));
    Stream::Default(gpu_).WaitFor(CurrentStream(gpu_));
    Event event(gpu_);
    event.Record(CurrentStream(gpu_));
    event.Synchronize();
    CurrentStream(gpu_).Synchronize();
    Synchronize(gpu_);
    ReleaseCachedGpuMemory(gpu_);
    ones_.Fill(1);
  }

  Device gpu_ = Device::Cpu();
  TensorOptions there_;
  Tensor ones_;
};

TEST_F(GpuGraphs, TakeNothingOfOtherThreads) {
  const Stream next = Stream::Next(gpu_);
  const Tensor base = Tensor::Ones({256}, there_);
  Tensor sum;
  // What the recording uses: the current stream, one more, and a companion.
  const auto body = [&](const std::function<void()>& meanwhile) {
    sum = ops::Add(base, base);
    meanwhile();
    {
      const StreamScope scope(next);
      sum = ops::Add(sum, base);
    }
    const Stream beside = Stream::Beside(CurrentStream(gpu_));
    {
      const StreamScope scope(beside);
      sum = ops::Add(sum, base);
    }
    meanwhile();
    sum = ops::Add(sum, base);
  };
  const auto nothing = [] {};
  body(nothing);
  Work({});
  const Graph alone = Graph::Record({gpu_}, [&] { body(nothing); });
  const Stream mine = CurrentStream(gpu_);
  for (const std::optional<Stream>& theirs :
       {std::optional<Stream>(), std::optional(mine), std::optional(next),
        std::optional(Stream::Beside(mine)),
        std::optional(Stream::ForCopies(Device::Cpu(), gpu_))}) {
    const Graph graph = Graph::Record({gpu_}, [&] {
      body([&] { std::thread([&] { Work(theirs); }).join(); });
    });
    EXPECT_EQ(graph.nodes(), alone.nodes());
    EXPECT_EQ(graph.kernels(), 4);
    graph.Replay();
    EXPECT_EQ(First(sum), 5);
  }
}

// Whatever comes before and after what is timed: nothing, one node or several.
TEST_F(GpuGraphs, ComputeTheSameUntimed) {
  const Tensor x = Tensor::Ones({256}, there_);
  std::vector<Event> times;
  for (int i = 0; i < 4; ++i) times.emplace_back(gpu_);
  Tensor sum;
  const auto body = [&](bool timed) {
    const Stream own = CurrentStream(gpu_), other = Stream::Next(gpu_);
    const auto time = [&](int i, const Stream& stream) {
      if (timed) times[static_cast<size_t>(i)].RecordTime(stream);
    };
    time(0, own);
    ops::AddInto(x, ones_, 1);
    time(1, own);
    time(2, own);
    other.WaitFor(own);
    Tensor twice;
    {
      const StreamScope scope(other);
      twice = ops::Add(x, x);
    }
    sum = ops::Add(x, ones_);
    own.WaitFor(other);
    time(3, own);
    ops::AddInto(sum, twice, 1);
  };
  body(true);
  const Graph plain = Graph::Record({gpu_}, [&] { body(false); });
  const Graph graph = Graph::Record({gpu_}, [&] { body(true); });
  EXPECT_EQ(graph.nodes(), plain.nodes() + 4);
  x.Fill(1);
  graph.Replay();  // x = 2
  EXPECT_EQ(First(sum), 7);
  const float first = times[3].MillisecondsSince(times[0]);
  EXPECT_GT(first, 0);
  graph.Replay(false);  // x = 3
  EXPECT_EQ(First(sum), 10);
  EXPECT_EQ(times[3].MillisecondsSince(times[0]), first);
  graph.Replay();
  EXPECT_EQ(First(sum), 13);
}

TEST_F(GpuGraphs, FreeWhatAGraphThatIsGoneMade) {
  const Tensor base = Tensor::Ones({256}, there_);
  Tensor sum;
  const auto body = [&] { sum = ops::Add(base, base); };
  body();
  Graph::Record({gpu_}, body);
  const Graph graph = Graph::Record({gpu_}, body);
  graph.Replay();
  EXPECT_EQ(First(sum), 2);
}

TEST_F(GpuGraphs, AReplayLeavesPendingReadsWhatTheyBeganWith) {
  const Tensor x = Tensor::Ones({256}, there_);
  const auto body = [&] { ops::AddInto(x, ones_, 1); };
  body();
  const PendingRead read(x);
  const Graph graph = Graph::Record({gpu_}, body);
  EXPECT_EQ(read.Pin()->raw_data(), x.raw_data());
  graph.Replay();
  EXPECT_EQ(First(*read.Pin()), 2);
  EXPECT_EQ(First(x), 3);
}

// Large enough for the copies to be under way when the writes are begun.
TEST_F(GpuGraphs, WritesComeAfterTheCopiesOfACheckpoint) {
  const Tensor launched = Tensor::Ones({int64_t{1} << 25}, there_);
  const Tensor replayed = Tensor::Ones({int64_t{1} << 25}, there_);
  const Tensor two = Tensor::Full({1}, 2, there_);
  const auto body = [&] { replayed.CopyFrom(two); };
  const Graph graph = Graph::Record({gpu_}, body);
  HostCopies copies;
  for (int i = 0; i < 2; ++i) {
    launched.Fill(1);
    replayed.Fill(1);
    const HostCopy copy =
        copies.Begin({{"launched", launched}, {"replayed", replayed}});
    graph.Replay();
    launched.CopyFrom(two);
    for (const auto& [name, tensor] : copy.Wait())
      EXPECT_TRUE(ops::BitEqual(tensor, Tensor::Ones(tensor.shape()))) << name;
  }
  EXPECT_EQ(First(replayed), 2);
}

TEST_F(GpuGraphs, OfTwoThreadsAreRecordedAtOnce) {
  Promise<void> begun[2];
  float results[2] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const Tensor x = Tensor::Full({256}, i + 1, there_);
      Tensor y;
      const auto body = [&](bool wait) {
        y = ops::Add(x, ones_);
        if (wait) {
          begun[i].Set(absl::OkStatus());
          EXPECT_TRUE(
              begun[1 - i].future().Await(std::chrono::seconds(20)).ok());
        }
        y = ops::Add(y, y);
      };
      body(false);
      const Graph graph = Graph::Record({gpu_}, [&] { body(true); });
      x.Fill(10 * (i + 1));
      graph.Replay();
      results[i] = First(y);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], 22);
  EXPECT_EQ(results[1], 42);
}

TEST_F(GpuGraphs, ABodyThatThrowsLeavesTheThreadAsItWas) {
  EXPECT_THROW(Graph::Record({gpu_},
                             [&] {
                               const Tensor sum = ops::Add(ones_, ones_);
                               Fail("body", "no such luck");
                             }),
               Error);
  EXPECT_THROW(Graph::Record({gpu_}, [&] { Graph::Record({gpu_}, [] {}); }),
               Error);
  EXPECT_THROW(Graph::Record({gpu_}, [&] { Synchronize(gpu_); }), Error);
  EXPECT_FALSE(Graph::IsRecording());
  Work({});
}

TEST_F(GpuGraphs, ReplaysCountAVersionOfWhatTheyWrite) {
  const Tensor x = Tensor::Ones({256}, there_);
  Tensor y;
  const Graph graph = Graph::Record({gpu_}, [&] {
    y = ops::Add(ones_, ones_);
    ops::AddInto(x, y);
  });
  const uint64_t read = ones_.version(), written = x.version(),
                 made = y.version();
  for (uint64_t replay = 1; replay <= 3; ++replay) {
    graph.Replay();
    EXPECT_EQ(ones_.version(), read);
    EXPECT_EQ(x.version(), written + replay);
    EXPECT_EQ(y.version(), made + replay);
  }
  EXPECT_EQ(First(x), 7);
}

// Results may be dropped; the memory is the graph's.
TEST_F(GpuGraphs, RefuseToReplayWithoutWhatTheyWereGiven) {
  Tensor x = Tensor::Ones({256}, there_), y;
  const Graph graph = Graph::Record({gpu_}, [&] { y = ops::Add(ones_, x); });
  graph.Replay();
  y = Tensor();
  graph.Replay();
  x = Tensor();
  EXPECT_THROW(graph.Replay(), Error);
}

}  // namespace
}  // namespace baton
