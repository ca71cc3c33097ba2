// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/cuda/delay.h"
#include "core/cuda/stream.h"
#include "core/future.h"
#include "core/graph.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/status.h"
#include "core/step_flags.h"
#include "core/tensor.h"
#include "tests/support/test_device.h"

namespace baton {
namespace {

class GpuStreams : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
    gpu_ = test::TestDevice();
  }
  Device gpu_ = Device::Cpu();
};

// A large kernel has more blocks than the GPU runs at a time. One that comes
// later and is small gets the next free place on a stream for copies, and
// otherwise waits until all blocks of the large one have begun.
TEST_F(GpuStreams, ForCopiesDoNotWaitForLargeKernels) {
  const TensorOptions there = {.device = gpu_};
  const Tensor square = Tensor::Ones({8192, 8192}, there);
  const Tensor x = Tensor::Ones({64}, there);
  const Stream computes = Stream::Next(gpu_);
  const Stream copies = Stream::ForCopies(gpu_, gpu_);
  Event begin(gpu_), copied(gpu_), computed(gpu_);
  for (int i = 0; i < 2; ++i) {  // the first loads what is loaded at first use
    Synchronize(gpu_);
    begin.RecordTime(computes);
    {
      const StreamScope scope(computes);
      ops::Matmul(square, square);
    }
    computed.RecordTime(computes);
    {
      const StreamScope scope(copies);
      ops::Add(x, x);
    }
    copied.RecordTime(copies);
  }
  Synchronize(gpu_);
  EXPECT_LT(copied.MillisecondsSince(begin),
            computed.MillisecondsSince(begin) / 2);
}

// Not for what the writer's stream was given after it.
TEST_F(GpuStreams, ARecordedReaderWaitsForTheWriteAlone) {
  const TensorOptions there = {.device = gpu_};
  const Tensor x = Tensor::Zeros({64}, there);
  const Tensor square = Tensor::Ones({2048, 2048}, there);
  const Stream writer = Stream::Next(gpu_), reader = Stream::Next(gpu_);
  Event begin(gpu_), read(gpu_), worked(gpu_);
  Tensor sum, product;
  const auto body = [&] {
    for (const Stream& stream : {writer, reader})
      stream.WaitFor(CurrentStream(gpu_));
    begin.RecordTime(CurrentStream(gpu_));
    {
      const StreamScope scope(writer);
      x.Fill(1);
      product = square;
      for (int i = 0; i < 20; ++i) product = ops::Matmul(product, square);
      worked.RecordTime(writer);
    }
    {
      const StreamScope scope(reader);
      sum = ops::Add(x, x);
      read.RecordTime(reader);
    }
    for (const Stream& stream : {writer, reader})
      CurrentStream(gpu_).WaitFor(stream);
  };
  body();  // loads what is loaded at first use
  const Graph graph = Graph::Record({gpu_}, body);
  for (int replay = 0; replay < 2; ++replay) graph.Replay();
  Synchronize(gpu_);
  EXPECT_EQ(sum.To(Device::Cpu()).data<float>()[63], 2);
  EXPECT_LT(read.MillisecondsSince(begin), worked.MillisecondsSince(begin) / 2);
}

TEST_F(GpuStreams, ARecordedWriterWaitsForReadersOnOtherStreams) {
  const TensorOptions there = {.device = gpu_};
  const Tensor square = Tensor::Ones({1024, 1024}, there);
  const Stream reader = Stream::Next(gpu_);
  Tensor product;
  const Graph graph = Graph::Record({gpu_}, [&] {
    square.Fill(1);
    {
      const StreamScope scope(reader);
      reader.WaitFor(Stream::Default(gpu_));
      product = ops::Matmul(square, square);
    }
    square.Fill(7);
    CurrentStream(gpu_).WaitFor(reader);
  });
  for (int replay = 0; replay < 3; ++replay) {
    graph.Replay();
    Synchronize(gpu_);
    EXPECT_EQ(product.To(Device::Cpu()).data<float>()[5], 1024);
    EXPECT_EQ(square.To(Device::Cpu()).data<float>()[5], 7);
  }
}

// The wait for one operand leaves a mark on the reader's stream, which is not
// yet the end of its use of the others.
TEST_F(GpuStreams, ARecordedWriterWaitsForReadersThatWaitThemselves) {
  const TensorOptions there = {.device = gpu_};
  const Tensor x = Tensor::Zeros({1 << 20}, there);
  const Tensor square = Tensor::Ones({2048, 2048}, there);
  const Stream reader = Stream::Next(gpu_), late = Stream::Next(gpu_);
  Tensor sum;
  const auto body = [&] {
    x.Fill(1);
    for (const Stream& stream : {reader, late})
      stream.WaitFor(CurrentStream(gpu_));
    Tensor y;
    {
      const StreamScope scope(late);
      Tensor product = square;
      for (int i = 0; i < 20; ++i) product = ops::Matmul(product, square);
      y = Tensor::Empty({1 << 20}, there);
      y.Fill(2);
    }
    {
      const StreamScope scope(reader);
      sum = ops::Add(x, y);
    }
    x.Fill(5);
    for (const Stream& stream : {reader, late})
      CurrentStream(gpu_).WaitFor(stream);
  };
  body();
  const Graph graph = Graph::Record({gpu_}, body);
  for (int replay = 0; replay < 3; ++replay) {
    graph.Replay();
    EXPECT_EQ(sum.To(Device::Cpu()).data<float>()[0], 3);
    EXPECT_EQ(sum.To(Device::Cpu()).data<float>()[(1 << 20) - 1], 3);
  }
}

TEST_F(GpuStreams, ADelayHoldsUpWhatComesAfterIt) {
  const Stream stream = Stream::Next(gpu_);
  Event begin(gpu_), end(gpu_);
  begin.Record(stream);
  cuda::Delay(stream, std::chrono::milliseconds(2));
  end.Record(stream);
  stream.Synchronize();
  EXPECT_GE(end.MillisecondsSince(begin), 2);
  EXPECT_LT(end.MillisecondsSince(begin), 1000);
}

// And holds up nothing that the stream is given afterwards.
TEST_F(GpuStreams, ACallComesAfterTheWorkBeforeIt) {
  const Stream stream = Stream::Next(gpu_);
  const StreamScope scope(stream);
  Tensor product = Tensor::Ones({2048, 2048}, {.device = gpu_});
  Event worked(gpu_);
  for (int i = 0; i < 20; ++i) product = ops::Matmul(product, product);
  worked.Record(stream);
  const Promise<void> called, may_return;
  bool had_ended = false;
  AfterWork(stream, [&had_ended, &worked, called,
                     may_return](const absl::Status& status) {
    had_ended = worked.HasEnded();
    called.Set(status);
    may_return.future().Await().IgnoreError();
  });
  ASSERT_TRUE(called.future().Await().ok());
  EXPECT_TRUE(had_ended);
  product.Fill(1);
  stream.Synchronize();
  may_return.Set(absl::OkStatus());
}

// In a process of its own, which the failure leaves without a GPU.
TEST_F(GpuStreams, ACallIsToldThatTheDeviceHasFailed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [this] {
    StepNumber step(gpu_);
    step.Begin(1);
    const Stream stream = Stream::Next(gpu_);
    const auto* const nowhere = reinterpret_cast<const uint64_t*>(16);
    AwaitFlag(nowhere, step, stream,
              std::chrono::steady_clock::time_point::max());
    const Promise<void> called;
    AfterWork(stream,
              [called](const absl::Status& status) { called.Set(status); });
    const absl::Status told = called.future().Await();
    std::fprintf(stderr, "told: %s\n", told.ToString().c_str());
    std::_Exit(told.ok() ? 1 : 0);
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(0), "illegal");
}

// The caller's is another of Baton's, by its handle.
TEST_F(GpuStreams, OpsOfAnAdoptedStreamComeBehindWhatItsOwnerGaveIt) {
  const TensorOptions there = {.device = gpu_};
  const Tensor square = Tensor::Ones({2048, 2048}, there);
  const Tensor x = Tensor::Ones({64}, there);
  const Stream owner = Stream::Next(gpu_);
  void* const handle = cuda::StreamHandle(gpu_.index(), owner.index());
  const Stream adopted = Stream::Adopt(gpu_, handle);
  EXPECT_EQ(cuda::StreamHandle(gpu_.index(), adopted.index()), handle);
  Event worked(gpu_);
  Tensor product = square, sum;
  {
    const StreamScope scope(owner);
    for (int i = 0; i < 20; ++i) product = ops::Matmul(product, square);
    worked.Record(owner);
  }
  {
    const StreamScope scope(adopted);
    sum = ops::Add(x, x);
  }
  adopted.Synchronize();
  EXPECT_TRUE(worked.HasEnded());
  EXPECT_EQ(sum.To(Device::Cpu()).ToVector<float>()[63], 2);
  adopted.Release();
  EXPECT_THROW(adopted.Release(), Error);
  EXPECT_EQ(ops::Add(sum, x).To(Device::Cpu()).ToVector<float>()[63], 3);
}

TEST_F(GpuStreams, AReleasedStreamsPlaceIsTakenAgain) {
  for (int round = 0; round < 3 * cuda::kAdoptedStreams; ++round)
    Stream::Adopt(gpu_, nullptr).Release();
  std::vector<Stream> all;
  for (int i = 0; i < cuda::kAdoptedStreams; ++i)
    all.push_back(Stream::Adopt(gpu_, nullptr));
  EXPECT_THROW(Stream::Adopt(gpu_, nullptr), Error);
  for (const Stream& stream : all) stream.Release();
}

}  // namespace
}  // namespace baton
