// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/link.h"

#include <gtest/gtest.h>

#include "tests/rpc/transport_worker.h"

namespace baton::rpc {
namespace {

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    host_.self = {"alice", Rank{0}, 1, "127.0.0.1:1"};
    host_.executor = std::make_shared<ThreadPool>(1, "test-link");
    host_.timer = std::make_unique<Timer>("test-dial");
    link_ = Link::Make(host_, {"bob", Rank{1}, 2, "127.0.0.1:1"});
  }
  ~LinkTest() override {
    link_->Close(absl::CancelledError("the test ends"));
    host_.lanes.AwaitNone();
  }
  absl::Status Send() {
    Transport::Sent sent = log_.Next();
    auto message = Outgoing::Make({"late", {}}, 1000, sent, host_.executor);
    EXPECT_TRUE(message.ok()) << message.status();
    link_->Send(*std::move(message));
    return log_.Await(1).at(0);
  }

  LinkHost host_;
  std::shared_ptr<Link> link_;
  SentLog log_;
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

}  // namespace
}  // namespace baton::rpc
