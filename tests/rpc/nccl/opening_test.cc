// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <string>

#include "rpc/wire.pb.h"
#include "tests/rpc/held_port.h"
#include "tests/rpc/nccl/nccl_ends.h"

// Between which workers the channel is chosen, and what keeps it from opening.
namespace baton::rpc {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

std::string OfferReason(ChannelKind& kind) {
  return std::string(kind.Offer().status().message());
}

TEST_F(NcclTest, ANetworkThatIsNotTrustedHasNone) {
  EXPECT_THAT(OfferReason(*MakeNccl(alice_.gpu, alice_.nccl, {})),
              HasSubstr("--trusted_fabric"));
}

TEST_F(NcclTest, WithoutNcclOrAGpuThereIsNoOffer) {
  const auto reason = [&](int own, int count) {
    const auto gpu = std::make_shared<FakeGpu>(machine_, own, count);
    return OfferReason(*MakeNccl(gpu, alice_.nccl, {.trusted_fabric = true}));
  };
  EXPECT_EQ(reason(0, 0), "no GPU");
  EXPECT_EQ(reason(2, 2), "no cuda:2 among 2 GPUs");
  EXPECT_EQ(reason(1, 2), "");
  alice_.nccl->version = absl::FailedPreconditionError("no NCCL: not here");
  EXPECT_EQ(OfferReason(*alice_.kind), "no NCCL: not here");
}

TEST_F(NcclTest, TwoOfOneGpuOrOfTwoVersionsHaveNone) {
  const std::string ours = *alice_.kind->Offer();
  const auto why = [&](const std::string& theirs) {
    return std::string(alice_.kind->Open({true, ours, theirs}, alice_.port)
                           .status()
                           .message());
  };
  EXPECT_EQ(why(ours), "it has the same GPU");
  EXPECT_EQ(why("\xff\xff"), "its offer does not parse");
  bob_.nccl->version = std::string("2.27.3");
  EXPECT_EQ(why(*bob_.kind->Offer()), "it has version 2.27.3, not 2.28.9");
  bob_.nccl->version = alice_.nccl->version;
  EXPECT_EQ(why(*bob_.kind->Offer()), "");
}

TEST_F(NcclTest, OtherBytesThanWereSentAreAReason) {
  fabric_->broken = true;
  Connect();
  // Whoever is the first to see it takes the other's lines away.
  const std::string whys[] = {alice_.port->AwaitSettled(),
                              bob_.port->AwaitSettled()};
  EXPECT_THAT(whys, Contains(HasSubstr("something else")));
  EXPECT_THAT(whys, Each(Not("open")));
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
  EXPECT_FALSE(alice_.channel->Export(alice_.gpu->Numbers(9)).has_value());
  EXPECT_EQ(alice_.port->broken(), "");
}

TEST_F(NcclTest, WhatNcclRefusesIsAReason) {
  fabric_->refusing = true;
  Connect();
  EXPECT_EQ(alice_.port->AwaitSettled(), "NCCL: no interface");
  EXPECT_EQ(bob_.port->AwaitSettled(), "there: NCCL: no interface");
}

TEST_F(NcclTest, LinesThatFailAreAReason) {
  fabric_->failing = true;
  Connect();
  EXPECT_THAT(alice_.port->AwaitSettled(), HasSubstr("NCCL: it fails"));
  EXPECT_THAT(bob_.port->AwaitSettled(), HasSubstr("NCCL: it fails"));
}

// What bob says next, to one who says what the test likes.
class TalkingTo : public NcclTest {
 protected:
  void Meet() {
    const std::string alices = *alice_.kind->Offer(),
                      bobs = *bob_.kind->Offer();
    bob_.channel = *bob_.kind->Open({false, bobs, alices}, port_);
  }
  void Tell(const wire::NcclWords& words) {
    bob_.channel->OnSaid(words.SerializeAsString());
  }
  wire::NcclWords Hear() {
    std::optional<std::string> said;
    EXPECT_TRUE(Within([&] {
      said = port_->TakeSaid();
      return said.has_value();
    }));
    wire::NcclWords words;
    EXPECT_TRUE(words.ParseFromString(said.value_or("")));
    return words;
  }
  static wire::NcclWords Turn() {
    wire::NcclWords words;
    words.set_turn(true);
    return words;
  }
  static wire::NcclWords Lines() {
    wire::NcclWords words;
    words.mutable_lines()->set_there("guessed");
    words.mutable_lines()->set_back("as well");
    return words;
  }
  const std::shared_ptr<HeldPort> port_ = std::make_shared<HeldPort>();
};

TEST_F(TalkingTo, AnUnknownIdIsAReason) {
  Meet();
  Tell(Turn());
  EXPECT_TRUE(Hear().turn());
  Tell(Lines());
  EXPECT_EQ(Hear().failed(), "NCCL: an unknown id");
}

TEST_F(TalkingTo, LinesOutOfTurnAreRefused) {
  Meet();
  Tell(Lines());
  EXPECT_EQ(Hear().failed(), "it makes lines for the second time");
}

TEST_F(TalkingTo, ATurnIsTakenOnce) {
  Meet();
  Tell(Turn());
  EXPECT_TRUE(Hear().turn());
  Tell(Turn());
  EXPECT_EQ(Hear().failed(), "it takes its turn for the second time");
}

TEST_F(TalkingTo, WhoIsLedIsNotToldToBegin) {
  Meet();
  wire::NcclWords words;
  words.set_begin(true);
  Tell(words);
  EXPECT_EQ(Hear().failed(), "it begins for the second time");
}

TEST_F(NcclTest, ATensorBeforeTheLinesIsRefused) {
  const std::string alices = *alice_.kind->Offer(), bobs = *bob_.kind->Offer();
  bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
  wire::NcclTicket ticket;
  ticket.set_bytes(4);
  EXPECT_EQ(bob_.channel
                ->Import({.shape = Shape({1}), .bytes = 4},
                         ticket.SerializeAsString())
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(NcclTest, AConnectionMayEndWhileItOpens) {
  for (int i = 0; i < 30; ++i) {
    Connect();
    if (i % 3 == 1) std::this_thread::yield();
    if (i % 3 == 2) alice_.port->AwaitSettled();
    Lose();
    EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
  }
}

TEST_F(NcclTest, AWorkerMayEndWhileItOpens) {
  fabric_->closed = true;
  Connect();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 2; }));
  alice_.kind = bob_.kind = nullptr;
  Lose();
}

class ImpatientNccl : public NcclTest {
 protected:
  ImpatientNccl()
      : NcclTest({.trusted_fabric = true,
                  .opening = std::chrono::milliseconds(50)}) {}
  // Whoever is the first to give up takes the other's lines away.
  void ExpectNobodyCame() {
    const std::string whys[] = {alice_.port->AwaitSettled(),
                                bob_.port->AwaitSettled()};
    EXPECT_THAT(whys, Contains(HasSubstr("within 50 ms")));
    EXPECT_THAT(whys, Each(Not("open")));
  }
};

TEST_F(ImpatientNccl, LinesThatDoNotOpenAreAReason) {
  fabric_->closed = true;
  Connect();
  ExpectNobodyCame();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
}

TEST_F(ImpatientNccl, AProofThatDoesNotComeIsAReason) {
  fabric_->stuck = true;
  Connect();
  ExpectNobodyCame();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
}

}  // namespace
}  // namespace baton::rpc
