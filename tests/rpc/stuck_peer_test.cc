// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "tests/rpc/grpc_worker.h"
#include "tests/support/child_process.h"
#include "tests/support/named.h"
#include "tests/support/program_path.h"

// Workers that end while a peer is stopped and its socket full, so that gRPC
// can neither send what it holds nor end its stream.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTimeout{300};
// Who waited for gRPC would wait until somebody wakes or kills the peer, which
// nobody does.
constexpr std::chrono::seconds kSoonEnough{10};

size_t Descriptors() {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

// Memory that knows when the last tensor of it is gone.
class Watched {
 public:
  Watched() : bytes_(std::make_shared<std::string>(64 << 20, 'x')) {}
  Tensor tensor() const {
    auto storage = Storage::Wrap(bytes_->data(), bytes_->size(), Device::Cpu(),
                                 [kept = bytes_] {});
    return Tensor::FromStorage(std::move(storage), DType::kU8, {64 << 20}, {1},
                               0);
  }
  bool held() const { return bytes_.use_count() > 1; }

 private:
  std::shared_ptr<std::string> bytes_;
};

template <typename Condition>
bool Becomes(const Condition& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Alice is here; bob is another process. Who dials is a parameter: alice's own
// streams and those that bob has dialed end in different ways.
class StuckPeer : public ::testing::TestWithParam<testing::Named<bool>> {
 protected:
  StuckPeer() {
    alice_->Start();
    if (GetParam().value) {
      bob_.emplace(
          std::vector<std::string>{testing::ProgramPath("echo_peer"), "bob"});
      alice_->transport->AddPeer({"bob", Rank{1}, 4711, bob_->ReadLine()});
      EXPECT_TRUE(
          alice_->SendTo("bob", {"ping", {Tensor::Zeros({100'000})}}).ok());
    } else {
      bob_.emplace(std::vector<std::string>{testing::ProgramPath("leaver"),
                                            "bob", "alice",
                                            alice_->transport->address()});
      EXPECT_EQ(bob_->ReadLine(), "up");
    }
    alice_->mailbox.Await(1);
  }
  void StopBobAndSend(const Tensor& tensor) {
    bob_->Kill(SIGSTOP);
    for (int i = 0; i < 5; ++i) {
      alice_->transport->Send("bob", {"", {tensor}}, log_.Next());
    }
  }
  Clock::duration TimeOfShutdown() {
    const auto start = Clock::now();
    alice_->transport->Shutdown(kTimeout);
    return Clock::now() - start;
  }

  std::optional<ChildProcess> bob_;
  std::unique_ptr<TestWorker> alice_ = NewWorker("alice", 0);
  SentLog log_;
};
INSTANTIATE_TEST_SUITE_P(StreamsThatWere, StuckPeer,
                         ::testing::Values(testing::Named<bool>{"Dialed", true},
                                           testing::Named<bool>{"Accepted",
                                                                false}),
                         ::testing::PrintToStringParamName());

TEST_P(StuckPeer, DoesNotHoldUpAShutdown) {
  const Watched memory;
  StopBobAndSend(memory.tensor());
  EXPECT_LT(TimeOfShutdown(), kSoonEnough);
  for (const absl::Status& status : log_.Await(5)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  }
  const auto start = Clock::now();
  alice_.reset();
  EXPECT_LT(Clock::now() - start, kSoonEnough);
}

TEST_P(StuckPeer, DoesNotHoldUpADestructor) {
  const Watched memory;
  StopBobAndSend(memory.tensor());
  const auto start = Clock::now();
  alice_.reset();
  EXPECT_LT(Clock::now() - start, kSoonEnough);
  EXPECT_EQ(log_.Await(5).size(), 5u);
}

TEST_P(StuckPeer, GivesAllBackOnceItIsKilled) {
  const size_t before = Descriptors();
  const Watched memory;
  StopBobAndSend(memory.tensor());
  TimeOfShutdown();
  alice_.reset();
  bob_->Kill(SIGKILL);
  EXPECT_TRUE(Becomes([&] { return !memory.held(); }));
  EXPECT_TRUE(Becomes([&] { return Descriptors() < before; }));
}

TEST_P(StuckPeer, GivesAllBackOnceItResumes) {
  const Watched memory;
  StopBobAndSend(memory.tensor());
  TimeOfShutdown();
  bob_->Kill(SIGCONT);
  EXPECT_TRUE(Becomes([&] { return !memory.held(); }));
}

TEST_P(StuckPeer, CannotKeepTheSocketOfAWorkerThatEnded) {
  const std::string address = alice_->transport->address();
  const std::string socket = address.substr(address.find("unix:") + 5);
  ASSERT_TRUE(std::filesystem::exists(socket));
  const Watched memory;
  StopBobAndSend(memory.tensor());
  TimeOfShutdown();
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_FALSE(
      std::filesystem::exists(std::filesystem::path(socket).parent_path()));
}

// In the end the process must go, too, with 0 and while its peer is stopped.
TEST(StuckPeerOfAProcess, LetsItEnd) {
  ChildProcess bob({testing::ProgramPath("echo_peer"), "bob"});
  ChildProcess carol(
      {testing::ProgramPath("leaver"), "carol", "bob", bob.ReadLine()});
  ASSERT_EQ(carol.ReadLine(), "up");
  bob.Kill(SIGSTOP);
  carol.WriteLine("leave");
  const auto took = carol.ReadLine(Clock::now() + kSoonEnough);
  ASSERT_TRUE(took.has_value());
  EXPECT_GE(std::atoi(took->c_str()), 1000);  // otherwise nothing was stuck
  const auto status = carol.Wait(Clock::now() + kSoonEnough);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status)) << *status;
  EXPECT_EQ(WEXITSTATUS(*status), 0);
}

// Each one that comes under its name finds what the last one left stuck.
TEST(StuckPeers, HoldNoMoreThanOneMessageEachAndNothingOnceTheyAreGone) {
  // Long enough for nobody to be lost before it is stopped.
  auto alice = NewWorker("alice", 0, {.lease = milliseconds(1000)});
  alice->Start();
  const Watched memory;
  size_t before = 0;
  constexpr int kCount = 4;
  std::vector<std::unique_ptr<ChildProcess>> bobs;
  for (int i = 0; i < kCount; ++i) {
    if (i == 1) {
      // gRPC has by now what it keeps for itself.
      bobs.clear();
      ASSERT_TRUE(Becomes([&] { return !memory.held(); }));
      before = Descriptors();
    }
    bobs.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
        testing::ProgramPath("echo_peer"), "bob", std::to_string(100 + i)}));
    alice->transport->AddPeer(
        {"bob", Rank{1}, 100u + i, bobs.back()->ReadLine()});
    ASSERT_TRUE(
        alice->SendTo("bob", {"ping", {Tensor::Zeros({100'000})}}).ok());
    bobs.back()->Kill(SIGSTOP);
    SentLog log;
    for (int k = 0; k < 3; ++k) {
      alice->transport->Send("bob", {"", {memory.tensor()}}, log.Next());
    }
    log.Await(3);
    alice->mailbox.AwaitLost(i + 1);
  }
  // Two pipes and at most one socket each.
  EXPECT_LE(Descriptors(), before + 3 * kCount + 2);
  bobs.clear();
  EXPECT_TRUE(Becomes([&] { return !memory.held(); }));
  EXPECT_TRUE(Becomes([&] { return Descriptors() <= before; }));
}

}  // namespace
}  // namespace baton::rpc
