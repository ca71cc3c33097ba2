// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_budget.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/shared_memory_pair.h"

// What shared memory a process makes and maps for all its peers together.
namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// Files as the kernel has them.
class MemoryRoomTest : public ::testing::Test {
 protected:
  MemoryRoomTest() {
    std::string name = ::testing::TempDir() + "baton_room_XXXXXX";
    root_ = mkdtemp(name.data());
    Write("/proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree:  1 kB\n"
          "MemAvailable:    8388608 kB\n");
  }
  ~MemoryRoomTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  void ExpectRoom(uint64_t limit, uint64_t free) {
    const MemoryRoom room = FindMemoryRoom(root_);
    EXPECT_EQ(room.limit, limit);
    EXPECT_EQ(room.free, free);
  }
  std::string root_;
};

TEST_F(MemoryRoomTest, IsTheMachinesWithoutACgroup) {
  ExpectRoom(16 * kGiB, 8 * kGiB);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  ExpectRoom(16 * kGiB, 8 * kGiB);
}

TEST_F(MemoryRoomTest, IsTheLeastOfTheCgroupsAbove) {
  Write("/proc/self/cgroup", "0::/job/step\n");
  Write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  Write("/sys/fs/cgroup/job/memory.max", absl::StrCat(4 * kGiB, "\n"));
  Write("/sys/fs/cgroup/job/memory.current", absl::StrCat(3 * kGiB, "\n"));
  Write("/sys/fs/cgroup/job/memory.stat",
        absl::StrCat("anon 1\ninactive_file ", kGiB, "\nactive_file 5\n"));
  ExpectRoom(4 * kGiB, 2 * kGiB);
}

TEST_F(MemoryRoomTest, IsThatOfACgroupOfVersion1) {
  Write("/proc/self/cgroup", "12:cpuset:/x\n4:cpu,memory:/docker/1:2\n");
  // A container sees its own group where those of the host begin.
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes",
        absl::StrCat(kGiB, "\n"));
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes",
        absl::StrCat(2 * kGiB, "\n"));
  ExpectRoom(kGiB, 0);
}

std::shared_ptr<SharedBudget> BudgetOf(MemoryRoom room) {
  return std::make_shared<SharedBudget>([room] { return room; });
}

TEST(SharedBudget, IsOneForAllWhoTakeOfIt) {
  const auto budget = BudgetOf({kGiB, kGiB});
  auto first = budget->Take(10 * kMiB, 60 * kMiB, 100 * kMiB);
  EXPECT_EQ(first->bytes(), 60 * kMiB);
  auto second = budget->Take(10 * kMiB, 60 * kMiB, 100 * kMiB);
  EXPECT_EQ(second->bytes(), 40 * kMiB);
  EXPECT_EQ(budget->Take(1, 1, 100 * kMiB), nullptr);
  first = nullptr;
  EXPECT_EQ(budget->taken(), 40 * kMiB);
  EXPECT_NE(budget->Take(60 * kMiB, 60 * kMiB, 100 * kMiB), nullptr);
}

TEST(SharedBudget, FollowsTheMemoryThereIs) {
  EXPECT_EQ(BudgetOf({kGiB, kGiB})->Take(kMiB, kGiB, kGiB)->bytes(), kGiB / 8);
  EXPECT_EQ(BudgetOf({kGiB, kMiB})->Take(kMiB / 4, kGiB, kGiB)->bytes(),
            kMiB / 2);
  EXPECT_EQ(BudgetOf({kGiB, kMiB})->Take(kMiB, kGiB, kGiB), nullptr);
}

TEST(SharedBudget, AsksForWhatIsNotUsedWhenItIsShort) {
  const auto budget = BudgetOf({kGiB, kGiB});
  std::unique_ptr<SharedBudget::Part> idle =
      budget->Take(kMiB, 4 * kMiB, 4 * kMiB);
  const uint64_t member = budget->Join([&idle] { idle = nullptr; });
  EXPECT_EQ(budget->Take(kMiB, kMiB, 4 * kMiB), nullptr);
  const auto next = budget->Take(kMiB, kMiB, 4 * kMiB);
  EXPECT_NE(next, nullptr);
  budget->Leave(member);
}

// Bytes of segments, each counted for both ends.
size_t MappedBytes() {
  std::istringstream maps(MappingsOfThisProcess());
  std::string line;
  size_t bytes = 0;
  while (std::getline(maps, line)) {
    if (line.find("memfd:baton") == std::string::npos) continue;
    char* end = nullptr;
    const size_t from = std::strtoull(line.c_str(), &end, 16);
    bytes += std::strtoull(end + 1, nullptr, 16) - from;
  }
  return bytes;
}

class IdleSegments : public SharedMemoryPair {
 protected:
  // 8 MB, in a segment that is made for it.
  Tensor SendLarge() { return Send(Tensor::Ones({2 << 20})); }
  // As the connection does now and then.
  bool BeatsUntil(const std::function<bool()>& done) {
    return Within([&] {
      alice_.channel->Beat();
      return done();
    });
  }
  uint64_t capacity() { return alice_.channel->info().capacity_bytes; }
};

TEST_F(IdleSegments, AreReturnedAfterATime) {
  Open();
  const size_t before = MappedBytes();
  const uint64_t first = capacity();
  Tensor got = SendLarge();
  EXPECT_GE(capacity(), first + got.nbytes());
  EXPECT_GE(alice_.made->taken(), got.nbytes());
  EXPECT_GE(bob_.mapped->taken(), got.nbytes());
  got = Tensor();
  PassReleases();
  EXPECT_TRUE(BeatsUntil([&] {
    return capacity() == first && MappedBytes() == before &&
           alice_.made->taken() == 0 && bob_.mapped->taken() == 0;
  })) << MappedBytes()
      << " of " << before;
  EXPECT_EQ(SendLarge().Slice(0, 0, 1).Item(), 1);
}

TEST_F(IdleSegments, AreNotThoseThatAreInUse) {
  Open();
  Tensor got = SendLarge();
  const uint64_t used = capacity();
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  EXPECT_TRUE(BeatsUntil([&] {
    EXPECT_EQ(capacity(), used);
    return std::chrono::steady_clock::now() > until;
  }));
  got.Fill(3);
  EXPECT_EQ(got.Slice(0, 0, 1).Item(), 3);
  // What was made to be sent as well.
  Tensor made = alice_.channel->Make(SpecOf(Tensor::Ones({100'000})));
  got = Tensor();
  PassReleases();
  EXPECT_TRUE(BeatsUntil([&] {
    return std::chrono::steady_clock::now() >
           until + std::chrono::milliseconds(200);
  }));
  made.Fill(4);
  EXPECT_EQ(made.Slice(0, 0, 1).Item(), 4);
}

TEST_F(IdleSegments, OfAPeerThatWantsOneClosedWhileItIsUsedStay) {
  Open();
  Tensor got = SendLarge();
  const Tensor next = Tensor::Ones({100'000});
  wire::SharedMemoryControl control;
  control.set_close(2);
  bob_.channel->OnControl(control.SerializeAsString());
  control.set_closed(77);
  bob_.channel->OnControl(control.SerializeAsString());
  EXPECT_TRUE(Within([&] {
    return !bob_.channel->Import(SpecOf(next), Export(next).ticket).ok();
  }));
  got.Fill(5);
  EXPECT_EQ(got.Slice(0, 0, 1).Item(), 5);
}

// Over connections. Together they would have five times as much.
TEST(SharedBudgetOfMany, IsTheProcesss) {
  constexpr size_t kBudgetOfAll = 24 * kMiB;
  constexpr size_t kPeersOfAlice = 5;
  auto alice = NewWorker("alice", 0, {.shared_memory_bytes = kBudgetOfAll});
  alice->Start();
  std::vector<std::unique_ptr<TestWorker>> peers;
  for (size_t i = 0; i < kPeersOfAlice; ++i) {
    peers.push_back(NewWorker(absl::StrCat("w", i), static_cast<int>(i) + 1));
    peers.back()->Start();
    alice->transport->AddPeer(peers.back()->info);
    ASSERT_TRUE(alice->SendTo(peers.back()->info.name, {"", {}}).ok());
  }
  ASSERT_TRUE(alice->AwaitChannel("shared memory"));
  const auto capacity = [&] {
    uint64_t bytes = 0;
    for (const TensorChannelInfo& info : alice->transport->TensorChannels())
      bytes += info.capacity_bytes;
    return bytes;
  };
  // Those who receive keep all that came.
  constexpr size_t kEach = 10;
  for (size_t i = 0; i < kEach; ++i) {
    for (const auto& peer : peers) {
      ASSERT_TRUE(
          alice->SendTo(peer->info.name, {"", {Tensor::Ones({1 << 20})}}).ok());
      EXPECT_LE(capacity(), kBudgetOfAll + kPeersOfAlice * 64 * 1024);
    }
  }
  uint64_t through = 0;
  for (const TensorChannelInfo& info : alice->transport->TensorChannels())
    through += info.tensors_sent;
  EXPECT_GT(through, 0u);
  for (const auto& peer : peers) {
    const auto letters = peer->mailbox.Await(kEach + 1);
    EXPECT_EQ(letters.back().message.tensors.at(0).Slice(0, 0, 1).Item(), 1);
    EXPECT_EQ(peer->mailbox.lost(), 0u);
  }
}

}  // namespace
}  // namespace baton::rpc
