// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/rpc/grpc_worker.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

// Workers that end, are killed, stopped, or slow.
namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class GrpcLoss : public ::testing::Test {
 protected:
  explicit GrpcLoss(milliseconds lease = kLongLease)
      : alice_(NewWorker(
            "alice", 0,
            {.reconnect_timeout = milliseconds(100), .lease = lease})) {
    alice_->Start();
    alice_->transport->AddPeer(bob_);
    EXPECT_TRUE(alice_->SendTo("bob", {"ping", {}}).ok());
    alice_->mailbox.Await(1);
  }
  Clock::duration TimeToLose(int signal) {
    const auto start = Clock::now();
    process_.Kill(signal);
    lost_ = alice_->mailbox.AwaitLost(1).at(0);
    return Clock::now() - start;
  }

  // The losses that are known without a lease would come by it at last.
  static constexpr milliseconds kLongLease{20'000};
  ChildProcess process_{{testing::ProgramPath("echo_peer"), "bob"}};
  // Nobody has seen it yet: the first connection may take its time.
  const WorkerInfo bob_{"bob", Rank{1}, 0, process_.ReadLine()};
  std::unique_ptr<TestWorker> alice_;
  absl::Status lost_;
};

// Those by the lease, which would else never come.
class GrpcSilence : public GrpcLoss {
 protected:
  GrpcSilence() : GrpcLoss(kLease) {}
  static constexpr milliseconds kLease{1000};
};

TEST_F(GrpcLoss, OfAKilledProcessIsNoticedLongBeforeTheLeaseEnds) {
  EXPECT_LT(TimeToLose(SIGKILL), kLongLease / 2);
  EXPECT_EQ(lost_.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(alice_->SendTo("bob", {}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcSilence, OfAStoppedProcessIsNoticedByTheLease) {
  const auto took = TimeToLose(SIGSTOP);
  EXPECT_GT(took, kLease / 4);  // not for one missing beat
  EXPECT_LT(took, kPatience / 2);
  EXPECT_EQ(lost_.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(lost_.message()), HasSubstr("bob is silent"));
}

TEST_F(GrpcSilence, OfAStoppedProcessFailsWhatWaitsForIt) {
  const Tensor large = Tensor::Zeros({16 << 18});
  SentLog log;
  process_.Kill(SIGSTOP);
  for (int i = 0; i < 4; ++i) {
    alice_->transport->Send("bob", {"", {large}}, log.Next());
  }
  EXPECT_EQ(log.Await(4).back().code(), absl::StatusCode::kUnavailable);
  // gRPC ends a stream only when its socket takes or refuses what it wrote.
  process_.Kill(SIGKILL);
}

TEST_F(GrpcSilence, OfAProcessThatResumesIsNotForGood) {
  TimeToLose(SIGSTOP);
  process_.Kill(SIGCONT);
  // It may take a busy machine more than one attempt to connect.
  const auto deadline = Clock::now() + kPatience;
  while (!alice_->SendTo("bob", {"again", {}}).ok()) {
    ASSERT_LT(Clock::now(), deadline);
  }
  EXPECT_EQ(alice_->mailbox.Await(2).back().message.header, "again");
}

// Nothing is said on it for many beats of both sides' leases.
TEST_F(GrpcSilence, DoesNotComeToAQuietConnection) {
  auto carol = NewWorker("carol", 2, {.lease = kLease});
  // Who does not see the others beat through shared memory.
  auto dave = NewWorker("dave", 3, {.lease = kLease, .shared_memory = false});
  for (TestWorker* worker : {carol.get(), dave.get()}) {
    worker->Start();
    alice_->transport->AddPeer(worker->info);
    ASSERT_TRUE(alice_->SendTo(worker->info.name, {}).ok());
  }
  EXPECT_TRUE(alice_->mailbox.NobodyLostFor(2 * kLease));
  EXPECT_EQ(carol->mailbox.lost() + dave->mailbox.lost(), 0u);
}

TEST_F(GrpcLoss, AmidATransferFailsIt) {
  process_.Kill(SIGSTOP);
  SentLog log;
  const Tensor large = Tensor::Zeros({64 << 18});
  for (int i = 0; i < 4; ++i) {
    alice_->transport->Send("bob", {"", {large}}, log.Next());
  }
  process_.Kill(SIGKILL);
  EXPECT_FALSE(log.Await(4).back().ok());
  alice_->mailbox.AwaitLost(1);
}

// The end of a write may come just as the call that it is of is cancelled.
TEST(Grpc, AcceptedStreamsMayBreakWhileTheyWrite) {
  auto alice = NewWorker("alice", 0, {.inline_delivery = true});
  auto bob = NewWorker("bob", 1, {.inline_delivery = true});
  alice->transport->AddPeer(bob->info);
  alice->Start();
  bob->Start();
  constexpr size_t kRounds = 600;
  SentLog log;
  for (size_t i = 0; i < kRounds; ++i) {
    // Alice dials again; the first message of a round may go with the last.
    while (!alice->SendTo("bob", {"ping", {}}).ok()) {
    }
    for (int k = 0; k < 3; ++k) {
      bob->transport->Send("alice", {"", {}}, log.Next());
    }
    bob->transport->Disconnect("alice", nullptr);
  }
  EXPECT_EQ(log.Await(3 * kRounds).size(), 3 * kRounds);
}

// A worker with an incarnation was there when that became known.
TEST(Grpc, AWorkerThatDiedBeforeTheFirstMessageIsNotAwaited) {
  constexpr milliseconds kConnecting{20'000};
  auto alice = NewWorker(
      "alice", 0,
      {.connect_timeout = kConnecting, .reconnect_timeout = milliseconds(300)});
  auto bob = NewWorker("bob", 1);
  alice->Start();
  alice->transport->AddPeer(bob->info);
  bob.reset();
  const auto start = Clock::now();
  EXPECT_EQ(alice->SendTo("bob", {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(Clock::now() - start, kConnecting / 2);
}

TEST(Grpc, AShutdownDoesNotWaitForAPeerThatIsGone) {
  constexpr milliseconds kAllowed{20'000};
  auto alice = NewWorker("alice", 0, {.reconnect_timeout = kAllowed});
  auto bob = NewWorker("bob", 1);
  alice->transport->AddPeer(bob->info);
  alice->Start();
  bob->Start();
  ASSERT_TRUE(alice->SendTo("bob", {"one", {}}).ok());
  bob.reset();
  alice->mailbox.AwaitLost(1);
  SentLog log;
  alice->transport->Send("bob", {"two", {}}, log.Next());
  const auto start = Clock::now();
  alice->transport->Shutdown(kAllowed);
  EXPECT_LT(Clock::now() - start, kAllowed / 2);
  EXPECT_EQ(log.Await(1).at(0).code(), absl::StatusCode::kUnavailable);
}

// It takes connections, but answers on none.
TEST(Grpc, AShutdownDoesNotWaitForAPeerThatBrokeOffAndIsStopped) {
  constexpr milliseconds kAllowed{20'000};
  ChildProcess process({testing::ProgramPath("echo_peer"), "bob"});
  auto alice =
      NewWorker("alice", 0, {.reconnect_timeout = kAllowed, .lease = kAllowed});
  alice->Start();
  alice->transport->AddPeer({"bob", Rank{1}, 0, process.ReadLine()});
  ASSERT_TRUE(alice->SendTo("bob", {"ping", {}}).ok());
  process.Kill(SIGSTOP);
  alice->transport->Disconnect("bob", nullptr);
  alice->mailbox.AwaitLost(1);
  SentLog log;
  alice->transport->Send("bob", {"two", {}}, log.Next());
  const auto start = Clock::now();
  alice->transport->Shutdown(kAllowed);
  EXPECT_LT(Clock::now() - start, kAllowed / 4);
  EXPECT_EQ(log.Await(1).at(0).code(), absl::StatusCode::kUnavailable);
  process.Kill(SIGKILL);
}

// Without a limit of its own it is what a peer may be silent of the lease.
TEST(Grpc, HowLongAPeerIsDialledAgainFollowsFromTheLease) {
  constexpr milliseconds kLease{400};
  auto alice = NewWorker("alice", 0, {.lease = kLease});
  alice->Start();
  alice->transport->AddPeer({"bob", Rank{1}, 7, "127.0.0.1:1"});
  const auto start = Clock::now();
  EXPECT_EQ(alice->SendTo("bob", {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(Clock::now() - start, 3 * kLease);
}

// A peer that stops reading fills its own limit and no memory of ours; the
// limit pauses reading, and what it held back arrives later.
TEST(Grpc, ASlowHandlerPausesReading) {
  auto alice = NewWorker("alice", 0);
  auto bob = NewWorker("bob", 1, {.max_undelivered_bytes = 1 << 20});
  Mutex mutex;
  CondVar open;
  bool may_go = false;
  bob->mailbox.OnEach([&](const Mailbox::Letter&) {
    MutexLock lock(mutex);
    while (!may_go) open.Wait(mutex);
  });
  alice->Start();
  bob->Start();
  alice->transport->AddPeer(bob->info);
  SentLog log;
  constexpr size_t kCount = 40;
  for (size_t i = 0; i < kCount; ++i) {
    alice->transport->Send("bob", {"", {Tensor::Zeros({1 << 20})}}, log.Next());
  }
  // Without the limit all of them go in that time.
  log.AwaitFor(kCount, milliseconds(500));
  EXPECT_LT(log.count(), kCount);
  {
    MutexLock lock(mutex);
    may_go = true;
    open.NotifyAll();
  }
  EXPECT_EQ(bob->mailbox.Await(kCount).size(), kCount);
}

}  // namespace
}  // namespace baton::rpc
