// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "core/ops/matmul.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/test_device.h"
#include "tests/support/within.h"

// Tensors between GPUs of two processes, which are the same GPU where there is
// only one: by CUDA IPC, or through the host by TCP.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using testing::Within;

// A channel between GPUs, and what makes it the one that two processes of one
// machine choose: where both work CUDA IPC is the first.
struct Way {
  std::string name = {};
  std::string file_name = {};
  std::vector<std::string> bobs_environment = {};
  bool shared_memory = true;
  bool sender_waits = false;  // until a tensor is written, with its message
  friend void PrintTo(const Way& way, std::ostream* out) {
    *out << way.file_name;
  }
};
const Way kIpc{.name = "CUDA IPC", .file_name = "CudaIpc"};
const Way kTcp{.name = "TCP",
               .file_name = "Tcp",
               .bobs_environment = {"BATON_CUDA_IPC=off"},
               .shared_memory = false,
               .sender_waits = true};

bool HasTwoGpus() { return cuda::DeviceCount() > 1; }
Device BobsGpu() { return Device::Cuda(HasTwoGpus() ? 1 : 0); }

std::vector<std::string> BobOn(Device device) {
  return {testing::ProgramPath("gpu_peer"), "bob", device.ToString()};
}
// Its environment is this process's otherwise.
std::vector<std::string> With(std::vector<std::string> command,
                              const std::vector<std::string>& environment) {
  command.insert(command.begin(), environment.begin(), environment.end());
  command.insert(command.begin(), "/usr/bin/env");
  return command;
}

struct Peer {
  explicit Peer(const std::vector<std::string>& command) : process(command) {}
  ChildProcess process;
  WorkerInfo info{"bob", Rank{1}, 4711, process.ReadLine()};
};

class TwoProcesses : public ::testing::Test {
 protected:
  explicit TwoProcesses(Way way = kIpc) : way_(std::move(way)) {}
  void SetUp() override {
    if (!test::TestDevice().is_cuda())
      GTEST_SKIP() << "runs with BATON_TEST_DEVICE=cuda";
  }
  // Two workers with these devices.
  void Meet(Device alices, Device bobs) { Meet(alices, BobOn(bobs)); }
  void Meet(Device alices, const std::vector<std::string>& bob) {
    bob_ = std::make_unique<Peer>(bob);
    alice_ = NewWorker("alice", 0,
                       {.reconnect_timeout = milliseconds(300),
                        .shared_memory = way_.shared_memory,
                        .device = alices});
    alice_->Start();
    alice_->transport->AddPeer(bob_->info);
  }
  Message Ask(const std::string& header, std::vector<Tensor> tensors) {
    EXPECT_TRUE(alice_->SendTo("bob", {header, std::move(tensors)}).ok());
    return alice_->mailbox.Await(++answers_).back().message;
  }
  std::string Tell(std::vector<Tensor> tensors) {
    return Ask("tell", std::move(tensors)).header;
  }
  TensorChannelInfo Info() {
    for (const TensorChannelInfo& info : alice_->transport->TensorChannels()) {
      if (info.name == way_.name) return info;
    }
    return {};
  }
  // Until tensors like this one travel so.
  void WarmUp(const Tensor& tensor) {
    const uint64_t before = Info().tensors_sent;
    EXPECT_TRUE(Within(kPatience, [&] {
      Tell({tensor});
      return Info().tensors_sent > before;
    })) << Info().why_not;
  }
  static Tensor On(Device device, int64_t count, double value) {
    return Tensor::Full({count}, value, {.device = device});
  }

  const Way way_;
  std::unique_ptr<Peer> bob_;
  std::unique_ptr<TestWorker> alice_;
  size_t answers_ = 0;
};

class GpuTensors : public TwoProcesses,
                   public ::testing::WithParamInterface<Way> {
 protected:
  GpuTensors() : TwoProcesses(GetParam()) {}
  void MeetOnTheWay() {
    Meet(Device::Cuda(0), With(BobOn(BobsGpu()), way_.bobs_environment));
    Ask("echo", {});
    ASSERT_TRUE(alice_->AwaitChannel(way_.name)) << Info().why_not;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, GpuTensors, ::testing::Values(kIpc, kTcp),
                         ::testing::PrintToStringParamName());

TEST_P(GpuTensors, ComeToTheDeclaredGpu) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Tensor gpu = On(Device::Cuda(0), 300'000, 2);
  WarmUp(gpu);
  const std::string there = BobsGpu().ToString();
  EXPECT_EQ(Tell({gpu, Tensor::Ones({50'000}), gpu.Slice(0, 0, 4)}),
            absl::StrCat(there, " 600000 cpu 50000 ", there, " 8"));
  EXPECT_TRUE(Within(kPatience, [&] { return Info().leases == 0; }));
}

TEST_P(GpuTensors, ComeBackToTheCallersGpu) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Tensor numbers =
      Tensor::Arange(120'000, DType::kF32).Reshape({2, 3, 4, 5000});
  for (const Tensor& tensor : {numbers, numbers.Permute({3, 1, 0, 2}),
                               numbers.Contiguous(MemoryFormat::kChannelsLast),
                               numbers.Slice(3, 1, 4999, 2)}) {
    const Tensor gpu = tensor.To(Device::Cuda(0));
    // The first ones travel otherwise; all must be right.
    for (int i = 0; i < 20; ++i) {
      const Message back = Ask("echo", {gpu});
      ASSERT_EQ(back.tensors.size(), 1u);
      EXPECT_EQ(back.tensors[0].device(), Device::Cuda(0));
      EXPECT_EQ(back.tensors[0].To(Device::Cpu()).ToVector<float>(),
                tensor.ToVector<float>());
    }
  }
  EXPECT_GT(Info().tensors_sent, 0u);
  EXPECT_TRUE(Within(kPatience, [&] {
    Ask("echo", {On(Device::Cuda(0), 120'000, 1)});
    return Info().tensors_received > 1;
  })) << "answers of bob's, beside the proof";
}

// While the GPU is still at work on it, and written again at once.
TEST_P(GpuTensors, AreValues) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  const Tensor square = Tensor::Ones({2048, 2048}, {.device = gpu});
  const Tensor tensor = On(gpu, 1 << 20, 0);
  WarmUp(tensor);
  for (int i = 1; i <= 50; ++i) {
    for (int k = 0; k < 5; ++k) (void)ops::Matmul(square, square);
    tensor.Fill(i);
    ASSERT_TRUE(alice_->SendTo("bob", {"tell", {tensor}}).ok());
    tensor.Fill(-1);
    EXPECT_EQ(alice_->mailbox.Await(++answers_).back().message.header,
              absl::StrCat(BobsGpu().ToString(), " ", int64_t{i} << 20));
  }
}

TEST_P(GpuTensors, OfManyStreamsArriveWhole) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  WarmUp(On(gpu, 100'000, 1));
  for (int i = 0; i < 200; ++i) {
    const StreamScope scope(Stream::Next(gpu));
    ASSERT_TRUE(alice_->SendTo("bob", {"tell", {On(gpu, 100'000, i)}}).ok());
  }
  const auto letters = alice_->mailbox.Await(answers_ += 200);
  // Large tensors may overtake each other.
  std::vector<std::string> told, expected;
  for (size_t i = 0; i < 200; ++i) {
    told.push_back(letters[letters.size() - 200 + i].message.header);
    expected.push_back(absl::StrCat(BobsGpu().ToString(), " ", i * 100'000));
  }
  EXPECT_THAT(told, ::testing::UnorderedElementsAreArray(expected));
}

// Beside work of both GPUs, and calls that wait until theirs is idle.
TEST_P(GpuTensors, CrossBothWaysAtOnce) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  EXPECT_TRUE(Within(kPatience, [&] {
    Ask("echo", {On(gpu, 1 << 20, 7)});
    return Info().tensors_received > 1;
  }));
  const Tensor square = Tensor::Ones({1024, 1024}, {.device = gpu});
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 20; ++i) {
      const StreamScope scope(Stream::Next(gpu));
      (void)ops::Matmul(square, square);
      ASSERT_TRUE(alice_->SendTo("bob", {"echo", {On(gpu, 1 << 20, i)}}).ok());
    }
    const auto letters = alice_->mailbox.Await(answers_ += 20);
    std::vector<double> values, expected;
    for (size_t i = 0; i < 20; ++i) {
      const Tensor& back =
          letters[letters.size() - 20 + i].message.tensors.at(0);
      EXPECT_EQ(back.Slice(0, 0, 1).Item(),
                back.Slice(0, (1 << 20) - 1, 1 << 20).Item());
      values.push_back(static_cast<double>(back.Slice(0, 0, 1).Item()));
      expected.push_back(static_cast<double>(i));
    }
    EXPECT_THAT(values, ::testing::UnorderedElementsAreArray(expected));
    ReleaseCachedGpuMemory(gpu);
  }
}

TEST_F(TwoProcesses, TravelThroughTheHostWhereTheSenderHasDeclaredNone) {
  Meet(Device::Cpu(), BobsGpu());
  const Tensor tensor = On(Device::Cuda(0), 1'000'000, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Tell({tensor, Tensor::Ones({3}), On(Device::Cuda(0), 5, 1)}),
              absl::StrCat(BobsGpu().ToString(), " 3000000 cpu 3 ",
                           BobsGpu().ToString(), " 5"));
  }
  const Message back = Ask("echo", {tensor});
  EXPECT_EQ(back.tensors.at(0).device(), Device::Cpu());
  EXPECT_EQ(back.tensors.at(0).Slice(0, 999'999, 1'000'000).Item(), 3);
}

TEST_F(TwoProcesses, TravelThroughTheHostToAWorkerWithoutAGpu) {
  Meet(Device::Cuda(0), Device::Cpu());
  EXPECT_EQ(Tell({On(Device::Cuda(0), 1'000'000, 3)}), "cpu 3000000");
}

TEST_F(TwoProcesses, TravelThroughTheHostToAnotherGpuWhereOneForbidsIt) {
  if (!HasTwoGpus()) GTEST_SKIP() << "needs two GPUs";
  Meet(Device::Cuda(0), With(BobOn(BobsGpu()), {"BATON_CUDA_IPC=one"}));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Tell({On(Device::Cuda(0), 1'000'000, 3)}), "cuda:1 3000000");
  EXPECT_FALSE(Info().open);
  EXPECT_EQ(Info().why_not,
            "it has another GPU, and BATON_CUDA_IPC=one is set there");
}

TEST_P(GpuTensors, AReceiverThatIsKilledGivesTheirMemoryBack) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  WarmUp(On(gpu, 1 << 20, 1));
  const size_t live = GpuMemoryStats(gpu).live_bytes;
  const Tensor last = On(gpu, 1 << 20, 5);
  for (int i = 0; i < 20; ++i) Ask("keep", {On(gpu, 1 << 20, i)});
  bob_->process.Kill(SIGSTOP);
  for (int i = 0; i < 20; ++i) {
    alice_->transport->Send("bob", {"keep", {On(gpu, 1 << 20, i)}}, nullptr);
  }
  alice_->transport->Send("bob", {"keep", {last}}, nullptr);
  bob_->process.Kill(SIGKILL);
  last.Fill(6);  // must not wait for the dead
  EXPECT_EQ(last.Slice(0, 0, 1).Item(), 6);
  alice_->mailbox.AwaitLost(1);
  EXPECT_TRUE(Within(
      kPatience,
      [&] {
        (void)Tensor::Empty({1}, {.device = gpu});  // collects what has ended
        return GpuMemoryStats(gpu).live_bytes <= live + last.nbytes() + 4096;
      }))
      << GpuMemoryStats(gpu).live_bytes << " live, " << live << " before";
  EXPECT_EQ(Info().leases, 0u);
}

TEST_P(GpuTensors, ASenderThatIsKilledHoldsNobodyUp) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  // So that the direction from bob is open.
  EXPECT_TRUE(Within(kPatience,
                     [&] {
                       Ask("echo", {On(gpu, 1'000'000, 7)});
                       return Info().tensors_received > 1;
                     }))
      << "here: " << Info().tensors_sent << " sent, " << Info().declined
      << " declined; there: " << Ask("channel", {}).header;
  Message late;
  for (int i = 0; i < 2; ++i) late = Ask("late", {});
  bob_->process.Kill(SIGKILL);
  alice_->mailbox.AwaitLost(1);
  const auto lost = std::chrono::steady_clock::now();
  // Whatever it holds now, this GPU goes on.
  (void)late.tensors.at(0).Slice(0, 0, 1).Item();
  Synchronize(gpu);
  EXPECT_LT(std::chrono::steady_clock::now() - lost, std::chrono::seconds(3));
  EXPECT_EQ(On(gpu, 10, 4).Slice(0, 0, 1).Item(), 4);
}

TEST_P(GpuTensors, ThatWereNotWrittenWhenTheirSenderDiedDoNotCome) {
  ASSERT_NO_FATAL_FAILURE(MeetOnTheWay());
  const Device gpu = Device::Cuda(0);
  EXPECT_TRUE(Within(kPatience, [&] {
    Ask("echo", {On(gpu, 1'000'000, 7)});
    return Info().tensors_received > 1;
  }));
  ASSERT_TRUE(alice_->SendTo("bob", {"late", {}}).ok());
  // 200 products of matrices of 8192 rows, which take a GPU seconds, go before
  // the tensor, which therefore is not written when bob ends.
  EXPECT_EQ(bob_->process.ReadLine(), "late");
  // His next answer overtakes the message that is held here for its tensor.
  if (!way_.sender_waits) {
    EXPECT_NE(Ask("channel", {}).header, "late");
  }
  bob_->process.Kill(SIGKILL);
  alice_->mailbox.AwaitLost(1);
  Synchronize(gpu);
  EXPECT_EQ(alice_->mailbox.count(), answers_);
}

TEST(GrpcDevice, ThatIsNotThereIsRefused) {
  const auto transport = MakeGrpcTransport({.device = Device::Cuda(63)});
  EXPECT_EQ(transport.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(transport.status().message()),
              ::testing::HasSubstr("cuda:63"));
}

}  // namespace
}  // namespace baton::rpc
