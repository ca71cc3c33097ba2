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

class GpuPulls : public GpuIpc {
 protected:
  void SetUp() override {
    GpuIpc::SetUp();
    if (IsSkipped()) return;
    lane_ = MakePullLane(Stream::ForCopies(Device::Cuda(10), Last()));
    source_ = Tensor::Arange(1 << 18, DType::kF32).To(Device::Cuda(0));
    Synchronize(Device::Cuda(0));
    ready_ = MakeSharedEvent(0);
  }
  Tensor Target() {
    const StreamScope scope(lane_->stream());
    return Tensor::Empty(source_.shape(), {.device = Last()});
  }
  std::unique_ptr<Pull> Begin(const Tensor& target) {
    return lane_->Begin(target, source_.raw_data(), ready_);
  }
  void ExpectArrived(const Tensor& target) {
    EXPECT_EQ(target.To(Device::Cpu()).ToVector<float>(),
              source_.To(Device::Cpu()).ToVector<float>());
  }
  static void Finish(Pull& pull, bool give_up = false) {
    while (!pull.Poll(give_up)) std::this_thread::yield();
  }

  std::shared_ptr<PullLane> lane_;
  Tensor source_;
  std::shared_ptr<void> ready_;
};

TEST_F(GpuPulls, CopyWhenTheSourceIsReady) {
  RecordSharedEvent(ready_.get(), CurrentStream(Device::Cuda(0)));
  const Tensor target = Target();
  const auto pull = Begin(target);
  OnThreadOfTheFirst([&] { Finish(*pull); });
  ExpectArrived(target);
}

TEST_F(GpuPulls, OfALaneBeginInTurnWhateverIsReadyFirst) {
  std::vector<Tensor> targets;
  std::vector<std::unique_ptr<Pull>> pulls;
  const Stream busy = Stream::Next(Device::Cuda(0));
  {
    const StreamScope scope(busy);
    const Tensor square = Tensor::Ones({4096, 4096}, {.device = busy.device()});
    for (int i = 0; i < 20; ++i) square.Fill(i);
    RecordSharedEvent(ready_.get(), busy);
  }
  for (int i = 0; i < 8; ++i) {
    targets.push_back(Target());
    pulls.push_back(Begin(targets.back()));
  }
  OnThreadOfTheFirst([&] {
    size_t ended = 0;
    while (ended < pulls.size()) {
      for (auto pull = pulls.rbegin(); pull != pulls.rend(); ++pull) {
        if (*pull == nullptr || !(*pull)->Poll(false)) continue;
        pull->reset();
        ++ended;
      }
    }
  });
  for (const Tensor& target : targets) ExpectArrived(target);
}

TEST_F(GpuPulls, ThatAreDroppedLeaveTheStreamToOthers) {
  const Tensor square = Tensor::Ones({4096, 4096}, {.device = Device::Cuda(0)});
  for (int i = 0; i < 50; ++i) square.Fill(i);
  RecordSharedEvent(ready_.get(), CurrentStream(Device::Cuda(0)));
  const Tensor dropped = Target(), target = Target();
  Begin(dropped).reset();
  const auto pull = Begin(target);
  OnThreadOfTheFirst([&] { Finish(*pull, true); });
  ExpectArrived(target);
}

}  // namespace
}  // namespace baton::cuda
