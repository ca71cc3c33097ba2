// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/tensor_channels.h"

#include <gtest/gtest.h>

#include "rpc/transports/channel_kinds.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/puppet_channel.h"

namespace baton::rpc {
namespace {

class ChannelsTest : public ::testing::Test {
 protected:
  const std::shared_ptr<PuppetKind> kind_ = std::make_shared<PuppetKind>(9);
  Timer timer_{"test-channels"};
  int woken_ = 0;
  const std::shared_ptr<TensorChannels> channels_ =
      TensorChannels::Make({kind_}, OffersOf({kind_}), OffersOf({kind_}),
                           {.self = "alice",
                            .peer = "bob",
                            .dialed = true,
                            .timer = &timer_,
                            .wake = [this] { ++woken_; }});
};

TEST_F(ChannelsTest, AChannelThatBreaksSaysWhyOnce) {
  kind_->made->port->Opened();
  Tensor tensor = Tensor::Ones({1});
  EXPECT_TRUE(channels_->Export(tensor).has_value());
  EXPECT_EQ(channels_->broken(), "");
  kind_->made->port->Broke("a string");
  EXPECT_EQ(channels_->broken(), "puppets: a string");
  EXPECT_EQ(woken_, 1);
  kind_->made->port->Broke("another one");
  EXPECT_EQ(channels_->broken(), "puppets: a string");
  EXPECT_EQ(woken_, 1);
}

TEST_F(ChannelsTest, NothingBreaksOnceTheConnectionHasEnded) {
  channels_->Close();
  EXPECT_TRUE(kind_->made->lost);
  kind_->made->port->Broke("a string");
  EXPECT_EQ(channels_->broken(), "");
  EXPECT_EQ(woken_, 0);
}

TEST_F(ChannelsTest, AChannelIsNotMadeWhereABetterOneIs) {
  const auto spare = std::make_shared<PuppetKind>(10, 9);
  const auto other = std::make_shared<PuppetKind>(11, 8);
  const ChannelKinds kinds = {kind_, spare, other};
  const auto channels =
      TensorChannels::Make(kinds, OffersOf(kinds), OffersOf(kinds),
                           {.self = "alice",
                            .peer = "bob",
                            .dialed = true,
                            .timer = &timer_,
                            .wake = [] {}});
  EXPECT_EQ(spare->made, nullptr);
  EXPECT_EQ(channels->info().at(1).why_not, "puppets is tried for this pair");
  EXPECT_NE(other->made, nullptr) << "there is no channel 8";
}

}  // namespace
}  // namespace baton::rpc
