// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <vector>

#include "tests/rpc/nccl/nccl_ends.h"

// Lines that open while others are in use, or open too.
namespace baton::rpc {
namespace {

class ThirdWorker : public NcclTest {
 protected:
  explicit ThirdWorker(const NcclOptions& options = {.trusted_fabric = true})
      : NcclTest(options), carol_(machine_, fabric_, 2, options) {}
  ~ThirdWorker() override {
    for (const Connection& each : others_) {
      each.here->OnLost();
      each.there->OnLost();
    }
  }

  struct Connection {
    std::shared_ptr<TestPort> port_here = std::make_shared<TestPort>(),
                              port_there = std::make_shared<TestPort>();
    std::shared_ptr<Channel> here = nullptr, there = nullptr;
  };
  Connection Meet(NcclSide& here, NcclSide& there) {
    const std::string ours = *here.kind->Offer(), theirs = *there.kind->Offer();
    Connection made;
    made.here = *here.kind->Open({true, ours, theirs}, made.port_here);
    made.there = *there.kind->Open({false, theirs, ours}, made.port_there);
    made.port_here->Connect(made.there);
    made.port_there->Connect(made.here);
    made.here->Start();
    others_.push_back(made);
    return made;
  }
  static bool IsOpen(const Connection& connection) {
    return connection.port_here->AwaitSettled() == "open" &&
           connection.port_there->AwaitSettled() == "open";
  }
  // Alice does, as one who is about to open lines: bob's tensors go otherwise.
  bool HoldsHerSends() {
    const auto ticket = alice_.channel->Export(alice_.gpu->Numbers(1));
    if (ticket.has_value()) alice_.channel->Withdraw(ticket->lease);
    return !ticket.has_value();
  }

  NcclSide carol_;
  std::vector<Connection> others_;
};

TEST_F(ThirdWorker, LinesOpenWhenWhatWasSentToOthersHasEnded) {
  Open();
  const auto [tensor, got] = SendStuck();
  for (NcclSide* dials : {&alice_, &carol_})
    Meet(*dials, dials == &alice_ ? carol_ : alice_);
  ASSERT_TRUE(Within([&] { return HoldsHerSends(); }));
  ASSERT_TRUE(HaveLookedAgain());
  EXPECT_EQ(fabric_->lines, 4) << "alice and bob's, and no more";
  fabric_->stuck = false;
  for (const Connection& each : others_) EXPECT_TRUE(IsOpen(each));
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(got, tensor));
}

TEST_F(ThirdWorker, SendsToOthersWaitUntilLinesAreOpen) {
  Open();
  std::vector<Tensor> sent, got;
  std::vector<Ticket> tickets;
  for (int i = 0; i < 20; ++i) {
    sent.push_back(alice_.gpu->Numbers(100 + i));
    tickets.push_back(Export(sent.back()));
  }
  fabric_->closed = true;
  const Connection other = Meet(alice_, carol_);
  ASSERT_TRUE(Within([&] { return fabric_->lines == 6; }));
  const int posts = fabric_->posts;
  for (size_t i = 0; i < 20; ++i) {
    const auto tensor = Import(sent[i], tickets[i]);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    got.push_back(*tensor);
  }
  EXPECT_FALSE(alice_.channel->Export(sent[0]).has_value())
      << "it goes otherwise, and at once";
  EXPECT_EQ(alice_.channel->info().declined, 1u);
  // Bob's are not held: he opens nothing.
  const Tensor bobs = bob_.gpu->Numbers(7, 1);
  const auto ticket = bob_.channel->Export(bobs);
  ASSERT_TRUE(ticket.has_value());
  const auto back = alice_.channel->Import(SpecOf(bobs), ticket->ticket);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->given.Await(kSoon).ok());
  EXPECT_TRUE(Left(20));
  EXPECT_EQ(fabric_->posts, posts + 2);
  for (const auto& given : given_) EXPECT_FALSE(given.ready());
  fabric_->closed = false;
  EXPECT_TRUE(IsOpen(other));
  ASSERT_TRUE(Settled());
  for (size_t i = 0; i < 20; ++i) EXPECT_TRUE(Equal(got[i], sent[i])) << i;
}

TEST_F(ThirdWorker, SendsGoOnWhenTheOpeningEndsOtherwise) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket ticket = Export(tensor);
  fabric_->closed = true;
  const Connection other = Meet(alice_, carol_);
  ASSERT_TRUE(Within([&] { return fabric_->lines == 6; }));
  const auto got = Import(tensor, ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  other.here->OnLost();
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(ThirdWorker, AllThreeOpenAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const Connection pairs[] = {Meet(alice_, bob_), Meet(bob_, carol_),
                                Meet(carol_, alice_), Meet(alice_, carol_)};
    for (const Connection& pair : pairs) EXPECT_TRUE(IsOpen(pair));
    for (const Connection& pair : pairs) {
      pair.here->OnLost();
      pair.there->OnLost();
    }
  }
}

class ImpatientThird : public ThirdWorker {
 protected:
  ImpatientThird()
      : ThirdWorker({.trusted_fabric = true,
                     .opening = std::chrono::milliseconds(2000),
                     .aborting = std::chrono::milliseconds(20)}) {}
};

TEST_F(ImpatientThird, ASendThatNeverEndsIsAReasonForTheOthers) {
  Open();
  const auto [tensor, got] = SendStuck();
  const Connection other = Meet(alice_, carol_);
  EXPECT_THAT(other.port_here->AwaitSettled(),
              ::testing::HasSubstr("within 2000 ms"));
  EXPECT_THAT(other.port_there->AwaitSettled(),
              ::testing::HasSubstr("within 2000 ms"));
  EXPECT_EQ(fabric_->lines, 4) << "none was joined";
  fabric_->stuck = false;
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(got, tensor));
  EXPECT_EQ(alice_.port->broken(), "");
}

class ClingingFirst : public ThirdWorker {
 protected:
  ClingingFirst()
      : ThirdWorker({.trusted_fabric = true,
                     .grace = std::chrono::milliseconds(1),
                     .aborting = std::chrono::milliseconds(20)}) {}
};

TEST_F(ClingingFirst, SendsGoOnBesideAnAbortThatDoesNotEnd) {
  Open();
  const Connection other = Meet(alice_, carol_);
  ASSERT_TRUE(IsOpen(other));
  const Sent lost = SendStuck();
  const Tensor tensor = alice_.gpu->Numbers(50);
  fabric_->clinging = true;
  Lose();
  EXPECT_TRUE(Within([] { return !AwaitAborts(std::chrono::seconds(0)); }));
  fabric_->stuck = false;
  EXPECT_TRUE(Within([&] { return alice_.channel->info().leases == 0; }));
  std::optional<Ticket> ticket;
  EXPECT_TRUE(Within([&] {
    ticket = other.here->Export(tensor);
    return ticket.has_value();
  }));
  const auto got =
      other.there->Import(SpecOf(tensor), ticket.value_or(Ticket{}).ticket);
  EXPECT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got.ok() && got->given.Await(kSoon).ok());
  EXPECT_FALSE(AwaitAborts(std::chrono::milliseconds(1))) << "it clings still";
  fabric_->clinging = false;
}

}  // namespace
}  // namespace baton::rpc
