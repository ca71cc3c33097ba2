// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link.h"

#include <gtest/gtest.h>

#include "tests/rpc/grpc_worker.h"
#include "tests/rpc/puppet_channel.h"
#include "tests/rpc/transport_worker.h"

namespace baton::rpc {
namespace {

class LinkTest : public ::testing::Test {
 protected:
  LinkTest() {
    host_.self = {"alice", Rank{0}, 1, "127.0.0.1:1"};
    host_.executor = std::make_shared<ThreadPool>(1, "test-link");
    host_.timer = std::make_unique<Timer>("test-dial");
    link_ = Link::Make(host_, {"bob", Rank{1}, 2, "127.0.0.1:1"});
  }
  ~LinkTest() override {
    link_->Close(absl::CancelledError("the test ends"));
    host_.streams.AwaitNone();
  }
  absl::Status Send() {
    Transport::Sent sent = log_.Next();
    auto message = Outgoing::Make({"late", {}}, 1000, sent, host_.executor);
    EXPECT_TRUE(message.ok()) << message.status();
    link_->Send(*std::move(message));
    return log_.Await(++sends_).back();
  }

  LinkHost host_;
  std::shared_ptr<Link> link_;
  SentLog log_;
  size_t sends_ = 0;
};

// As a sender does that found the link just before it was closed.
TEST_F(LinkTest, AClosedLinkFailsWhatIsSentAndDialsNobody) {
  const absl::Status why = absl::UnavailableError("worker bob was removed");
  link_->Close(why);
  EXPECT_EQ(Send(), why);
  EXPECT_TRUE(link_->idle());
  EXPECT_EQ(host_.attempts, 0u);
}

TEST_F(LinkTest, NobodyIsDialedOnceTheTransportStops) {
  host_.stopping = true;
  EXPECT_EQ(Send(), absl::UnavailableError("the transport is shut down"));
  EXPECT_TRUE(link_->idle());
  EXPECT_EQ(host_.attempts, 0u);
}

TEST_F(LinkTest, AChannelThatBreaksEndsTheConnection) {
  const auto bob = NewWorker("bob", 1);
  bob->Start();
  // Bob takes it for the channel of shared memory, which says nothing yet.
  const auto kind = std::make_shared<PuppetKind>(1);
  host_.kinds = {kind};
  Mailbox mailbox;
  host_.gate->Open(&mailbox);
  link_ = Link::Make(host_, bob->info);
  ASSERT_TRUE(Send().ok());
  EXPECT_EQ(bob->mailbox.Await(1).size(), 1u);  // before it breaks under it
  kind->made->port->Broke("a string");
  EXPECT_EQ(bob->mailbox.AwaitLost(1).size(), 1u);
  const auto lost = mailbox.AwaitLost(1);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].message().find("puppets: a string"), std::string::npos)
      << lost[0];
  EXPECT_TRUE(kind->made->lost);
  // It can be used anew.
  EXPECT_TRUE(Send().ok());
  EXPECT_EQ(bob->mailbox.Await(2).size(), 2u);
  host_.gate->Close();
}

}  // namespace
}  // namespace baton::rpc
