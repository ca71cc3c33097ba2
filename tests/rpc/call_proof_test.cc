// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_proof.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/security.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc::internal {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;

const std::string kToken(64, '7');

// One caller and one rendezvous, and a clock that is turned by hand.
class CallProofTest : public ::testing::Test {
 protected:
  // A call until it is let in or refused for good, as a caller makes it.
  absl::Status Call(const std::string& asked) {
    for (bool again = false;; again = true) {
      last_ = *prover_.Show(asked);
      std::string answer;
      const absl::Status status = guard_->Check(last_, asked, now_, &answer);
      if (status.ok()) return prover_.CheckAnswer(answer);
      ++refusals_;
      if (again || !prover_.TakeChallenge(answer)) return status;
    }
  }
  absl::Status SayAgain(const std::string& shown, const std::string& asked) {
    std::string answer;
    return guard_->Check(shown, asked, now_, &answer);
  }

  std::unique_ptr<CallGuard> guard_ = std::make_unique<CallGuard>(kToken);
  CallProver prover_{kToken};
  CallGuard::Clock::time_point now_ = CallGuard::Clock::now();
  std::string last_;
  int refusals_ = 0;
};

TEST_F(CallProofTest, OnlyTheFirstOfManyCallsIsMadeTwice) {
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Call("renew"), IsOk());
  EXPECT_EQ(refusals_, 1);
  now_ += CallGuard::kChallengeLife + 1s;
  EXPECT_THAT(Call("renew"), IsOk());
  EXPECT_EQ(refusals_, 2);
  guard_ = std::make_unique<CallGuard>(kToken);  // it has started again
  EXPECT_THAT(Call("renew"), IsOk());
  EXPECT_EQ(refusals_, 3);
}

TEST_F(CallProofTest, NothingIsGoodTwiceOrForAnotherCall) {
  ASSERT_THAT(Call("leave"), IsOk());
  EXPECT_THAT(SayAgain(last_, "leave"),
              Fails(StatusCode::kUnauthenticated, "made before"));
  const std::string first = last_;
  ASSERT_THAT(Call("renew"), IsOk());
  EXPECT_THAT(SayAgain(first, "leave"),
              Fails(StatusCode::kUnauthenticated, "made before"));
  // Not made before, but made for something else.
  const std::string shown = *prover_.Show("renew");
  EXPECT_THAT(SayAgain(shown, "leave"),
              Fails(StatusCode::kUnauthenticated, "another cluster token"));
  EXPECT_THAT(SayAgain(shown, "renew"), IsOk());
  now_ += CallGuard::kChallengeLife + 1s;
  EXPECT_THAT(SayAgain(*prover_.Show("renew"), "renew"),
              Fails(StatusCode::kUnauthenticated, "not proved yet"));
  EXPECT_THAT(SayAgain(last_, "renew"),
              Fails(StatusCode::kUnauthenticated, "not proved yet"));
}

TEST_F(CallProofTest, WhatACallerShowsDoesNotProveTheRendezvous) {
  ASSERT_THAT(Call("renew"), IsOk());
  const auto of_caller = [this] {
    wire::CallProof shown;
    EXPECT_TRUE(shown.ParseFromString(*prover_.Show("renew")));
    wire::AnswerProof answer;
    answer.set_proof(shown.proof());
    return answer.SerializeAsString();
  };
  for (const std::string& forged :
       {of_caller(), std::string(), std::string("x"),
        wire::AnswerProof().SerializeAsString()}) {
    EXPECT_THAT(prover_.CheckAnswer(forged),
                Fails(StatusCode::kUnauthenticated,
                      "does not prove to know the cluster token"));
  }
}

TEST_F(CallProofTest, AnAnswerIsGoodForItsCallAlone) {
  ASSERT_THAT(Call("renew"), IsOk());
  std::string answer;
  ASSERT_THAT(guard_->Check(*prover_.Show("renew"), "renew", now_, &answer),
              IsOk());
  EXPECT_THAT(prover_.CheckAnswer(answer), IsOk());
  ASSERT_TRUE(prover_.Show("renew").ok());
  EXPECT_THAT(prover_.CheckAnswer(answer),
              Fails(StatusCode::kUnauthenticated, "does not prove"));
}

TEST_F(CallProofTest, AChallengeOfAnotherIsNone) {
  CallGuard impostor(kToken);
  std::string challenge;
  ASSERT_FALSE(impostor.Check(*prover_.Show(""), "", now_, &challenge).ok());
  ASSERT_TRUE(prover_.TakeChallenge(challenge));
  EXPECT_THAT(SayAgain(*prover_.Show("renew"), "renew"),
              Fails(StatusCode::kUnauthenticated, "not proved yet"));
}

TEST_F(CallProofTest, TokensThatDifferAreNamed) {
  guard_ = std::make_unique<CallGuard>(std::string(64, '8'));
  EXPECT_THAT(Call("join"), Fails(StatusCode::kUnauthenticated,
                                  "the caller has another cluster token; "
                                  "give all workers of the cluster the same "
                                  "--cluster_token_file"));
  EXPECT_THAT(SayAgain("", "join"),
              Fails(StatusCode::kUnauthenticated, "has no cluster token"));
  guard_ = std::make_unique<CallGuard>("");
  EXPECT_THAT(Call("join"),
              Fails(StatusCode::kUnauthenticated, "the called has none"));
  EXPECT_THAT(SayAgain("", "join"), IsOk());
}

TEST(ProveToken, DependsOnEachPartAndWhereItEnds) {
  const std::string proof = ProveToken(kToken, {"role", "ab", "c"});
  EXPECT_EQ(proof.size(), 32u);
  EXPECT_EQ(proof, ProveToken(kToken, {"role", "ab", "c"}));
  EXPECT_NE(proof, ProveToken(kToken, {"role", "a", "bc"}));
  EXPECT_NE(proof, ProveToken(kToken, {"role", "ab", "c", ""}));
  EXPECT_NE(proof, ProveToken(kToken, {"other", "ab", "c"}));
  EXPECT_NE(proof, ProveToken(std::string(64, '8'), {"role", "ab", "c"}));
  // As Python's hmac has it: b"".join(len(p).to_bytes(8, "little") + p ...).
  EXPECT_EQ(absl::BytesToHexString(proof),
            "cb0f924c8ffda792daaf71de1305196588a98cff3bfb0ee8b5cf9ae7978489a6");
}

}  // namespace
}  // namespace baton::rpc::internal
