// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/rpc/peer/peer_process.h"
#include "tests/support/status_matchers.h"

// How soon a call that waits at a process hears of its end.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

class DetectionTest : public ::testing::Test {
 protected:
  DetectionTest(int count, std::chrono::milliseconds lease) {
    const Meeting meeting{server_->address(), count + 1, lease};
    for (int i = 0; i < count; ++i) {
      peers_.push_back(StartPeer(absl::StrCat("peer", i), meeting));
    }
    alice_ = JoinAsAlice(meeting);
    for (auto& peer : peers_) EXPECT_EQ(peer->ReadLine(), "joined");
  }
  // From the signal to the error at the caller, for which it waits 10 s.
  double TimeToHear(int i, int signal) {
    const std::string name = absl::StrCat("peer", i);
    Future<int> call = alice_->Async<&WaitForever>(name);
    EXPECT_THAT(alice_->Async<&Sum>(name, 1, 2).Await(), IsOk());
    const auto start = Clock::now();
    peers_[i]->Kill(signal);
    EXPECT_THAT(call.Await(10s), Fails(absl::StatusCode::kUnavailable, name));
    return Milliseconds(Clock::now() - start).count();
  }

  const std::unique_ptr<rpc::RendezvousServer> server_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::vector<std::unique_ptr<ChildProcess>> peers_;
  std::unique_ptr<rpc::Agent> alice_;
};

class KillDetection : public DetectionTest {
 protected:
  static constexpr int kPeers = 10;
  KillDetection() : DetectionTest(kPeers, 20s) {}
};

class StopDetection : public DetectionTest {
 protected:
  static constexpr auto kLease = 2000ms;
  StopDetection() : DetectionTest(1, kLease) {}
};

// Half of it at most; the times are those of this machine and hour.
TEST_F(KillDetection, ComesLongBeforeTheLeaseEnds) {
  std::vector<double> times;
  for (int i = 0; i < kPeers; ++i) {
    times.push_back(TimeToHear(i, SIGKILL));
    if (HasFailure()) return;
  }
  std::sort(times.begin(), times.end());
  std::printf("killed: known after ms, in order:");
  for (double ms : times) std::printf(" %.2f", ms);
  std::printf("; median %.2f\n", times[kPeers / 2]);
}

// Without a lease nobody would hear of it. How much of the lease may pass is
// said in failure_detector_test.cc, by a clock of its own, and by rpc_chaos.
TEST_F(StopDetection, ComesByTheLease) {
  const double ms = TimeToHear(0, SIGSTOP);
  std::printf("stopped: known after %.0f ms of a lease of 2000\n", ms);
  EXPECT_GT(ms, kLease / 4ms);  // not for one missing beat
}

}  // namespace
}  // namespace baton::testing
