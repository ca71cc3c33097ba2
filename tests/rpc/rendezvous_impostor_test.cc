// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What somebody without the token gets who listens where a rendezvous was.

#include <gtest/gtest.h>

#include <atomic>

#include "rpc/call_proof.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous.pb.h"
#include "tests/rpc/impostor.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;

const Security kServiceToken{.token = std::string(64, '5')};

class RendezvousImpostor : public ::testing::Test {
 protected:
  // Alice's rendezvous has been at address_, where nobody is now.
  void SetUp() override {
    const auto server = RendezvousServer::Make("127.0.0.1:0", kServiceToken);
    ASSERT_THAT(server, IsOk());
    address_ = (*server)->address();
    const auto joined = Join(address_, alice_);
    ASSERT_THAT(joined, IsOk());
    joined_ = *joined;
  }
  // A challenge to who proves nothing, then `status` and `message`; neither is
  // proved.
  Impostor::Script Pretend(const absl::Status& status,
                           const std::string& message = "") {
    return [this, status, message](const auto&) -> Impostor::Reply {
      if (++asked_ == 1) {
        wire::AnswerProof challenge;
        challenge.set_challenge(std::string(56, 'c'));
        return {.end = true,
                .status = absl::UnauthenticatedError("prove it"),
                .proof = challenge.SerializeAsString()};
      }
      wire::AnswerProof answer;
      answer.set_proof(std::string(32, 'p'));
      return {.message = message,
              .end = true,
              .status = status,
              .proof = answer.SerializeAsString()};
    };
  }
  // Of a member that there is not.
  template <typename Answer>
  static std::string Forged(Answer answer) {
    for (const char* name : {"alice", "mallory"}) {
      wire::Worker& member = *answer.add_members();
      member.set_name(name);
      member.set_incarnation(7);
      member.set_address("127.0.0.1:6");
    }
    return answer.SerializeAsString();
  }

  const JoinOptions alice_{.self = {"alice", Rank{0}, 7, "127.0.0.1:1"},
                           .world_size = 1,
                           .timeout = 30s,
                           .lease = 1s,
                           .access = {.security = kServiceToken}};
  std::string address_;
  Membership joined_;
  std::atomic<int> asked_{0};
};

TEST_F(RendezvousImpostor, IsNeitherToldTheTokenNorBelievedWhoIsThere) {
  Impostor impostor(address_,
                    Pretend(absl::OkStatus(), Forged(wire::JoinAnswer())));
  EXPECT_THAT(Join(address_, alice_),
              Fails(StatusCode::kUnauthenticated,
                    "it does not prove to know the cluster token"));
  EXPECT_EQ(asked_, 2);
  EXPECT_FALSE(impostor.HasHeard(kServiceToken.token));
}

TEST_F(RendezvousImpostor, IsNotBelievedThatAWorkerIsStruckOff) {
  Impostor impostor(address_, Pretend(absl::NotFoundError("no such worker")));
  RendezvousLease lease(address_, alice_, joined_);
  lease.Start([](const MemberEvent&) {});
  EXPECT_TRUE(impostor.AwaitMessages(4, 30s));  // it goes on
  EXPECT_FALSE(impostor.HasHeard(kServiceToken.token));
}

TEST_F(RendezvousImpostor, BringsNoNewcomers) {
  wire::RenewAnswer answer;
  answer.set_version(99);
  Impostor impostor(address_, Pretend(absl::OkStatus(), Forged(answer)));
  std::atomic<int> newcomers{0};
  {
    RendezvousLease lease(address_, alice_, joined_);
    lease.Start([&](const MemberEvent&) { ++newcomers; });
    EXPECT_TRUE(impostor.AwaitMessages(4, 30s));
  }
  EXPECT_EQ(newcomers, 0);
  EXPECT_FALSE(impostor.HasHeard(kServiceToken.token));
}

}  // namespace
}  // namespace baton::rpc
