// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What one worker may cost another.

#include <gmock/gmock.h>

#include "rpc/agent.h"
#include "rpc/call_options.h"
#include "rpc/peer_account.h"
#include "tests/rpc/counter.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::Rank;
using rpc::internal::PeerAccount;

TEST(PeerAccount, LimitsTheCallsAndTheirBytes) {
  const auto bob = std::make_shared<PeerAccount>(
      "bob", PeerAccount::Limits{.calls = 2, .bytes = 100});
  auto first = bob->TakeCall(60);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(bob->TakeCall(41),
              Fails(StatusCode::kResourceExhausted,
                    "60 bytes of calls of worker bob wait already, of 100 that "
                    "may (--max_call_bytes_per_peer); try again later"));
  auto second = bob->TakeCall(40);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(bob->TakeCall(0),
              Fails(StatusCode::kResourceExhausted,
                    "2 calls of worker bob wait already, of 2 that may "
                    "(--max_calls_per_peer)"));
  first->reset();
  second->reset();
  // One alone may be of any size.
  const auto alone = bob->TakeCall(SIZE_MAX);
  EXPECT_THAT(alone, IsOk());
  EXPECT_THAT(bob->TakeCall(1), Fails(StatusCode::kResourceExhausted, "bytes"));
}

TEST(PeerAccount, TellsOnceThatTooManyRepliesWait) {
  const auto bob =
      std::make_shared<PeerAccount>("bob", PeerAccount::Limits{.replies = 2});
  bool first = false;
  auto one = bob->TakeReply(first);
  auto two = bob->TakeReply(first);
  ASSERT_NE(two, nullptr);
  EXPECT_FALSE(first);
  EXPECT_EQ(bob->TakeReply(first), nullptr);
  EXPECT_TRUE(first);
  one = nullptr;
  one = bob->TakeReply(first);
  EXPECT_NE(one, nullptr);
  EXPECT_EQ(bob->TakeReply(first), nullptr);
  EXPECT_FALSE(first);  // some have waited all the time
  one = nullptr;
  two = nullptr;
  one = bob->TakeReply(first);
  two = bob->TakeReply(first);
  EXPECT_EQ(bob->TakeReply(first), nullptr);
  EXPECT_TRUE(first);
}

Gate* gate = nullptr;
int HoldText(const std::string&) {
  gate->Await();
  return 1;
}
std::string Echo(const std::string& text) { return text; }
std::string Letters(int64_t count) {
  return std::string(static_cast<size_t>(count), 'x');
}

// alice and bob over sockets, bob with limits.
struct TwoTensors {
  explicit TwoTensors(const rpc::AgentOptions& limits,
                      size_t max_bytes = 1 << 30) {
    for (const std::string name : {"alice", "bob"}) {
      rpc::Registry registry;
      registry.AddFunction<&HoldText>();
      registry.AddFunction<&Echo>();
      registry.AddFunction<&Letters>();
      rpc::GrpcOptions options;
      if (name == "bob") options.max_message_bytes = max_bytes;
      auto transport = rpc::MakeGrpcTransport(options);
      EXPECT_THAT(transport, IsOk());
      rpc::AgentOptions mine = limits;
      mine.self = {name, Rank{name == "bob"}, 7, (*transport)->address()};
      if (bob != nullptr || name == "bob") mine.peers = {alice->self()};
      auto agent = rpc::Agent::Start(std::move(mine), std::move(registry),
                                     *std::move(transport));
      EXPECT_THAT(agent, IsOk());
      (name == "bob" ? bob : alice) = *std::move(agent);
    }
    alice->AddPeer(bob->self());
  }
  std::unique_ptr<rpc::Agent> alice, bob;
};

TEST(Limits, AFloodOfCallsIsRefusedBeyondWhatMayWait) {
  Gate open;
  gate = &open;
  TwoTensors two({.self = {}, .worker_threads = 1, .max_calls_per_peer = 8});
  std::vector<Future<int>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(two.alice->Async<&HoldText>("bob", std::string("x")));
  }
  // Those that are refused say so while the others still wait.
  for (size_t i = 8; i < calls.size(); ++i) {
    EXPECT_THAT(calls[i].Await(),
                Fails(StatusCode::kResourceExhausted, "--max_calls_per_peer"));
    EXPECT_TRUE(rpc::CallErrorOf(calls[i].Await().status())->retryable);
  }
  open.Open();
  for (size_t i = 0; i < 8; ++i) EXPECT_THAT(calls[i].Await(), IsOk());
  EXPECT_THAT(two.alice->Async<&Echo>("bob", std::string("again")).Await(),
              IsOk());
}

TEST(Limits, TheBytesOfWaitingCallsAreLimitedToo) {
  Gate open;
  gate = &open;
  TwoTensors two(
      {.self = {}, .worker_threads = 1, .max_call_bytes_per_peer = 1'000'000});
  std::vector<Future<int>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(
        two.alice->Async<&HoldText>("bob", std::string(300'000, 'x')));
  }
  for (size_t i = 3; i < calls.size(); ++i) {
    EXPECT_THAT(calls[i].Await(), Fails(StatusCode::kResourceExhausted,
                                        "--max_call_bytes_per_peer"));
  }
  open.Open();
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(calls[i].Await(), IsOk());
}

TEST(Limits, CallsAndResultsThatAreTooLargeFailAlone) {
  TwoTensors two({.self = {}}, 100'000);
  EXPECT_THAT(
      two.alice->Async<&Echo>("bob", std::string(200'000, 'x')).Await(),
      Fails(StatusCode::kResourceExhausted, "(its --max_message_bytes)"));
  const auto letters = two.alice->Async<&Letters>("bob", 200'000).Await();
  EXPECT_THAT(letters,
              Fails(StatusCode::kResourceExhausted,
                    "at most 100000 are allowed (--max_message_bytes)"));
  EXPECT_FALSE(rpc::CallErrorOf(letters.status())->retryable);
  EXPECT_EQ(*two.alice->Async<&Echo>("bob", std::string("fits")).Await(),
            "fits");
}

// Messages that were handed over and not dealt with count: reading stops, and
// goes on once they are.
TEST(Limits, ReadingStopsWhileTooMuchIsUnhandled) {
  constexpr size_t kCount = 64;
  constexpr size_t kLimit = size_t{4} << 20;
  auto alice = rpc::NewWorker("alice", 0);
  auto bob = rpc::NewWorker(
      "bob", 1, {.max_undelivered_bytes = kLimit, .inline_delivery = true});
  Mutex mutex;
  bool holding = true;
  std::vector<std::shared_ptr<void>> held;
  bob->mailbox.OnEach([&](const rpc::Mailbox::Letter& letter) {
    MutexLock lock(mutex);
    if (holding) held.push_back(letter.message.receipt);
  });
  alice->Start();
  bob->Start();
  alice->transport->AddPeer(bob->info);
  rpc::SentLog log;
  for (size_t i = 0; i < kCount; ++i) {
    alice->transport->Send("bob", {"", {Tensor::Zeros({1 << 18})}}, log.Next());
  }
  bob->mailbox.Await(4);
  // Small messages have a stream of their own, which stops as well.
  EXPECT_TRUE(bob->mailbox.NobodyLostFor(300ms));
  EXPECT_LE(bob->mailbox.count(), kLimit / (1 << 20) + 2);
  EXPECT_LT(log.count(), kCount);
  std::vector<std::shared_ptr<void>> dropped;
  {
    MutexLock lock(mutex);
    holding = false;
    dropped.swap(held);
  }
  dropped.clear();
  EXPECT_EQ(bob->mailbox.Await(kCount).size(), kCount);
}

}  // namespace
}  // namespace baton::testing
