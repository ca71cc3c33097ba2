// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/ipc.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/cuda/memory.h"
#include "core/cuda/status.h"
#include "core/cuda/stream.h"
#include "tests/support/test_device.h"

// Within one process, which opens no handle of its own: what each side does
// before and after that.
namespace baton::cuda {
namespace {

class GpuIpc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  // The last of this process, so that it is not what threads have by default
  // where there are two.
  static Device Last() { return Device::Cuda(DeviceCount() - 1); }
};

// A thread whose device is the first one, as those of servers are.
template <typename Work>
void OnThreadOfTheFirst(const Work& work) {
  std::thread([&] {
    Check("test", cudaSetDevice(0));
    work();
  }).join();
}

TEST_F(GpuIpc, AnEventIsSharedByThreadsOfAnotherDevice) {
  const int device = Last().index();
  const Tensor tensor = Tensor::Ones({1000}, {.device = Last()});
  OnThreadOfTheFirst([&] {
    // As many as a connection begins with.
    for (int i = 0; i < 64; ++i) {
      const std::shared_ptr<void> event = MakeSharedEvent(device);
      EXPECT_EQ(HandleOfEvent(event.get(), device).size(),
                sizeof(cudaIpcEventHandle_t));
      RecordSharedEvent(event.get(), CurrentStream(Last()));
      const DeviceScope scope(device);
      SynchronizeEvent(event.get());
      EXPECT_TRUE(EventHasEnded(event.get()));
    }
  });
}

TEST_F(GpuIpc, ASegmentIsSharedByThreadsOfAnotherDevice) {
  const Tensor tensor = Tensor::Ones({1000}, {.device = Last()});
  OnThreadOfTheFirst([&] {
    const auto place = PlaceOf(tensor);
    ASSERT_TRUE(place.has_value());
    const std::string handle =
        ShareSegment(place->segment, tensor.device().index());
    EXPECT_EQ(handle.size(), sizeof(cudaIpcMemHandle_t));
    UnshareSegment(place->segment, tensor.device().index());
  });
}

TEST_F(GpuIpc, CopiesAreWaitedForLikeWhatAnyStreamWrites) {
  const Tensor source =
      Tensor::Arange(1 << 24, DType::kF32).To(Device::Cuda(0));
  Synchronize(Device::Cuda(0));
  const Stream copies = Stream::ForCopies(Device::Cuda(10), Last());
  OnThreadOfTheFirst([&] {
    for (int i = 0; i < 8; ++i) {
      Tensor target;
      {
        const StreamScope scope(copies);
        target = Tensor::Empty(source.shape(), {.device = Last()});
      }
      auto ended = CopyFromSegment(target, source.raw_data(), copies);
      EXPECT_EQ(target.Slice(0, (1 << 24) - 1, 1 << 24).Item(), (1 << 24) - 1);
      while (!ended()) std::this_thread::yield();
    }
  });
}

TEST_F(GpuIpc, AnEventEndsWithWhatWasRecorded) {
  const int device = Last().index();
  const std::shared_ptr<void> event = MakeSharedEvent(device);
  const Tensor square = Tensor::Ones({4096, 4096}, {.device = Last()});
  Synchronize(Last());
  for (int i = 0; i < 200; ++i) square.Fill(i);
  RecordSharedEvent(event.get(), CurrentStream(Last()));
  OnThreadOfTheFirst([&] {
    EXPECT_FALSE(SharedEventHasEnded(event.get(), device));
    while (!SharedEventHasEnded(event.get(), device)) std::this_thread::yield();
  });
}

}  // namespace
}  // namespace baton::cuda
