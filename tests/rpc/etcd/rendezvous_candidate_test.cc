// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/etcd/rendezvous_candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "rpc/rendezvous.h"
#include "tests/support/etcd_nodes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::internal::Etcd;
using std::chrono::system_clock;

// A candidate of this process.
class Candidate {
 public:
  Candidate(const std::string& etcd, const rpc::Security& security = {}) {
    auto made = rpc::RendezvousCandidate::Make(
        {.etcd = etcd,
         .listen = "127.0.0.1:0",
         .security = security,
         .ttl = 1s},
        [this](const std::string& address, bool serves) {
          MutexLock lock(mutex_);
          address_ = address;
          serves_ = serves;
        });
    EXPECT_THAT(made, IsOk());
    candidate_ = *std::move(made);
  }
  void End() { candidate_.reset(); }
  std::string address() {
    MutexLock lock(mutex_);
    return address_;
  }
  bool serves() {
    MutexLock lock(mutex_);
    return serves_;
  }

 private:
  Mutex mutex_;
  std::string address_ ABSL_GUARDED_BY(mutex_);
  bool serves_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<rpc::RendezvousCandidate> candidate_;
};

class RendezvousCandidates : public ::testing::Test {
 protected:
  static rpc::JoinOptions Alone(const std::string& cluster,
                                std::chrono::milliseconds timeout = 20s,
                                const rpc::Security& security = {}) {
    return {.cluster = cluster,
            .self = {"alice", rpc::Rank{0}, 7, "127.0.0.1:1"},
            .world_size = 1,
            .timeout = timeout,
            .access = {.security = security}};
  }
  absl::Status Join(const rpc::JoinOptions& options) {
    return rpc::Join(nodes_.address(), options).status();
  }
  static absl::Status Asked(const std::string& address) {
    return rpc::ListWorkers(address, "none", 5s).status();
  }
  // What etcd says from now on.
  void Publish(const std::string& address) {
    const auto etcd = Etcd::Make(nodes_.address(), {});
    ASSERT_THAT(etcd, IsOk());
    const auto soon = system_clock::now() + 5s;
    ASSERT_THAT((*etcd)->Grant(7, 60s, soon), IsOk());
    ASSERT_THAT(
        (*etcd)->Create(rpc::internal::kRendezvousKey, address, 7, soon),
        IsOk());
  }

  EtcdNodes nodes_;
};

TEST_F(RendezvousCandidates, OneServesAndTheOtherRefuses) {
  Candidate one(nodes_.address()), two(nodes_.address());
  ASSERT_TRUE(Within(20s, [&] { return one.serves() || two.serves(); }));
  EXPECT_THAT(Join(Alone("first")), IsOk());
  Candidate& serving = one.serves() ? one : two;
  Candidate& other = one.serves() ? two : one;
  EXPECT_FALSE(other.serves());
  EXPECT_THAT(Asked(serving.address()), Fails(StatusCode::kNotFound, "none"));
  EXPECT_THAT(Asked(other.address()),
              Fails(StatusCode::kUnavailable, "stands by"));
  // Who ends in order says so.
  serving.End();
  EXPECT_THAT(Join(Alone("second")), IsOk());
  EXPECT_TRUE(other.serves());
}

TEST_F(RendezvousCandidates, StopsToAnswerWhereEtcdDoesNotHearIt) {
  Candidate one(nodes_.address());
  ASSERT_TRUE(Within(20s, [&] { return one.serves(); }));
  nodes_.Kill(0);
  nodes_.Kill(1);
  EXPECT_TRUE(
      Within(20s, [&] { return absl::IsUnavailable(Asked(one.address())); }));
  EXPECT_TRUE(Within(20s, [&] { return !one.serves(); }));
  nodes_.StartAgain(0);
  nodes_.StartAgain(1);
  EXPECT_THAT(Join(Alone("later")), IsOk());
  EXPECT_TRUE(one.serves());
}

// Whoever waits for others asks the next one that serves.
TEST_F(RendezvousCandidates, WhoWaitsForOthersWaitsOnAtTheNextOne) {
  auto one = std::make_unique<Candidate>(nodes_.address());
  rpc::JoinOptions pair = Alone("pair");
  pair.world_size = 2;
  auto alice = std::async(std::launch::async, [&] { return Join(pair); });
  ASSERT_TRUE(Within(20s, [&] { return one->serves(); }));
  one.reset();
  Candidate two(nodes_.address());
  rpc::JoinOptions other = pair;
  other.self = {"bob", rpc::Rank{0}, 8, "127.0.0.1:2"};
  EXPECT_THAT(Join(other), IsOk());
  EXPECT_THAT(alice.get(), IsOk());
}

TEST_F(RendezvousCandidates, ThatNoneServesIsSaid) {
  EXPECT_THAT(
      Join(Alone("any", 1s)),
      Fails(StatusCode::kUnavailable,
            absl::StrCat("cannot reach the rendezvous at ", nodes_.address(),
                         ": none serves; start baton-rendezvous "
                         "--etcd=",
                         nodes_.address())));
}

TEST_F(RendezvousCandidates, OneThatCannotProveTheTokenIsNotBelieved) {
  const auto impostor = rpc::RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(impostor, IsOk());
  Publish((*impostor)->address());
  const rpc::Security token{.token = std::string(64, '3')};
  EXPECT_THAT(Join(Alone("any", 20s, token)),
              Fails(StatusCode::kUnauthenticated, "token"));
}

TEST_F(RendezvousCandidates, NobodyIsLedBeyondThisMachineInClear) {
  Publish("192.0.2.1:2900");
  EXPECT_THAT(Join(Alone("any")), Fails(StatusCode::kInvalidArgument,
                                        "192.0.2.1:2900, beyond this machine"));
}

TEST_F(RendezvousCandidates, WhatIsNoAddressIsRefused) {
  Publish("etcd://127.0.0.1:1");
  EXPECT_THAT(Join(Alone("any")),
              Fails(StatusCode::kInvalidArgument, "is no host:port"));
}

TEST(RendezvousByEtcd, ThatNoNodeAnswersIsSaid) {
  const std::string nobody = "etcd://127.0.0.1:1,127.0.0.1:2";
  rpc::JoinOptions options = {.self = {"alice", rpc::Rank{0}, 7, "127.0.0.1:1"},
                              .world_size = 1,
                              .timeout = 1s};
  EXPECT_THAT(rpc::Join(nobody, options),
              Fails(StatusCode::kUnavailable,
                    absl::StrCat("the etcd at ", nobody,
                                 " does not serve (are most of its nodes "
                                 "started, and are the addresses right?): "
                                 "127.0.0.1:1: Connection refused")));
}

TEST(RendezvousByEtcd, ACandidateThatOthersCannotReachIsRefused) {
  EXPECT_THAT(rpc::RendezvousCandidate::Make({.etcd = "etcd://192.0.2.1:2379",
                                              .listen = "127.0.0.1:0",
                                              .security = {.insecure = true}},
                                             [](const std::string&, bool) {}),
              Fails(StatusCode::kInvalidArgument, "--listen=HOST:PORT"));
}

}  // namespace
}  // namespace baton::testing
