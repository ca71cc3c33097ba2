// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "rpc/transports/grpc.h"
#include "tests/rpc/peer/keeper.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton {

namespace testing {
// Something happens while it is encoded.
struct Eventful {
  std::function<void()> meanwhile;
};
}  // namespace testing

template <>
struct rpc::Codec<testing::Eventful> {
  static void Encode(rpc::Encoder&, const testing::Eventful& value) {
    value.meanwhile();
  }
  static testing::Eventful Decode(rpc::Decoder&) { return {}; }
};

// Calls under way to a worker that is lost: the error of each says so, whatever
// became of its request.
namespace testing {
namespace {

int Take(const Eventful&) { return 1; }

using namespace std::chrono_literals;
using absl::StatusCode;

constexpr char kLost[] = "worker bob and what it had is lost: worker bob is ";

std::unique_ptr<rpc::Agent> StartAlice(
    const rpc::WorkerInfo& bob, std::unique_ptr<rpc::Transport> transport) {
  rpc::AgentOptions options{
      .self = {"alice", rpc::Rank{0}, 1, transport->address()}, .peers = {bob}};
  rpc::Registry registry;
  FillKeeper(registry);
  auto alice = rpc::Agent::Start(std::move(options), std::move(registry),
                                 std::move(transport));
  EXPECT_THAT(alice, IsOk());
  return *std::move(alice);
}

// Keeps what it is to send until it loses it.
class LosingTransport final : public rpc::Transport {
 public:
  std::string address() const override { return "nowhere"; }
  absl::Status Start(const rpc::WorkerInfo&,
                     rpc::MessageHandler* handler) override {
    handler_ = handler;
    return absl::OkStatus();
  }
  void AddPeer(const rpc::WorkerInfo&) override {}
  void RemovePeer(const std::string&) override {}
  void Forget(const rpc::WorkerInfo&) override {}
  void Disconnect(const std::string&, Task) override {}
  void Send(const std::string&, rpc::Message, Sent sent) override {
    MutexLock lock(mutex_);
    kept_.push_back(std::move(sent));
  }
  void Shutdown(std::chrono::milliseconds) override { FailAll("shut down"); }

  void Lose(const rpc::WorkerInfo& peer) {
    constexpr char kWhy[] = "worker bob is silent";
    handler_->OnPeerLost(peer, absl::DeadlineExceededError(kWhy));
    FailAll(kWhy);
  }
  // It has left, and nobody hears it.
  void SendIntoTheVoid() { EndAll(absl::OkStatus()); }

 private:
  void FailAll(const char* why) { EndAll(absl::UnavailableError(why)); }
  void EndAll(const absl::Status& status) {
    std::vector<Sent> kept;
    {
      MutexLock lock(mutex_);
      kept = std::exchange(kept_, {});
    }
    for (Sent& sent : kept) sent(status);
  }

  rpc::MessageHandler* handler_ = nullptr;
  Mutex mutex_;
  std::vector<Sent> kept_ ABSL_GUARDED_BY(mutex_);
};

// Who waits for the first keeps the thread that brings the news, so that there
// is all the time for the reports of the others.
TEST(LostCalls, EndByTheLossThoughTheirRequestsAreReportedBeforeTheirTurn) {
  const rpc::WorkerInfo bob{"bob", rpc::Rank{1}, 2, "nowhere"};
  auto owned = std::make_unique<LosingTransport>();
  LosingTransport& transport = *owned;
  const auto alice = StartAlice(bob, std::move(owned));
  auto done = std::make_shared<Gate>();
  const Future<int> first = alice->Async<&Sum>("bob", 1, 2);
  const Future<int> second = alice->Async<&Sum>("bob", 3, 4);
  first.OnReady([done](const auto&) { EXPECT_TRUE(done->Await()); });
  second.OnReady([done](const auto&) { done->Open(); });
  transport.Lose(bob);
  EXPECT_THAT(second.Await(10s), Fails(StatusCode::kUnavailable, kLost));
  EXPECT_THAT(first.Await(10s), Fails(StatusCode::kUnavailable, kLost));
}

// One that was given up and is still listed is tried, and its transport may
// take a request for a connection that the other end has forgotten.
TEST(LostCalls, EndWhenTheWorkerIsStruckOffThatWasGivenUpBefore) {
  const rpc::WorkerInfo bob{"bob", rpc::Rank{1}, 2, "nowhere"};
  auto owned = std::make_unique<LosingTransport>();
  LosingTransport& transport = *owned;
  const auto alice = StartAlice(bob, std::move(owned));
  transport.Lose(bob);
  ASSERT_TRUE(Within(
      10s, [&] { return alice->GetDebugInfo().peers.at(0).state == "gone"; }));
  const Future<int> call =
      alice->Async<&Sum>("bob", {.timeout = kNoLimit}, 1, 2);
  transport.SendIntoTheVoid();
  alice->StrikeOff({rpc::MemberEvent::Kind::kLost, bob,
                    absl::UnavailableError("not heard for its lease")});
  EXPECT_THAT(call.Await(10s),
              Fails(StatusCode::kUnavailable, "not heard for its lease"));
}

TEST(LostCalls, EndWhenTheirWorkerIsRemovedBeforeTheirRequestsAreSent) {
  const rpc::WorkerInfo bob{"bob", rpc::Rank{1}, 2, "nowhere"};
  auto owned = std::make_unique<LosingTransport>();
  LosingTransport& transport = *owned;
  const auto alice = StartAlice(bob, std::move(owned));
  const Future<int> call =
      alice->Async<&Take>("bob", {.timeout = kNoLimit},
                          Eventful{[&] { alice->RemovePeer("bob"); }});
  transport.SendIntoTheVoid();
  EXPECT_THAT(call.Await(10s), Fails(StatusCode::kUnavailable,
                                     "before the call to it had left"));
}

// Their tensors are more than the kernels hold between the two.
TEST(LostCalls, OverTcpToASilentWorkerAllSayWhatIsLost) {
  ChildProcess process{{ProgramPath("echo_peer"), "bob"}};
  const rpc::WorkerInfo bob{"bob", rpc::Rank{1}, 4711, process.ReadLine()};
  auto made = rpc::MakeGrpcTransport({.shared_memory = false});
  ASSERT_THAT(made, IsOk());
  rpc::Transport& transport = **made;
  const auto alice = StartAlice(bob, *std::move(made));
  transport.Send("bob", {"ack", {}}, nullptr);
  const auto is_up = [&] {
    return alice->GetDebugInfo().peers.at(0).state == "up";
  };
  ASSERT_TRUE(Within(20s, [&] {
    const auto channels = transport.TensorChannels();
    return !channels.empty() && channels.front().name == "TCP" &&
           channels.front().open && is_up();
  }));
  process.Kill(SIGSTOP);
  const Tensor small = Tensor::Zeros({1}), large = Tensor::Zeros({250'000});
  std::vector<Future<int>> calls;
  for (int i = 0; i < 200; ++i) {
    Future<int> call =
        alice->Async<&Measure>("bob", i % 4 == 0 ? small : large);
    if (!is_up()) break;  // what is called from now on is dialled for anew
    calls.push_back(std::move(call));
  }
  ASSERT_FALSE(calls.empty());
  for (Future<int>& call : calls) {
    EXPECT_THAT(call.Await(30s), Fails(StatusCode::kUnavailable, kLost));
  }
}

}  // namespace
}  // namespace testing
}  // namespace baton
