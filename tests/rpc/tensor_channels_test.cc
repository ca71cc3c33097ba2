// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/tensor_channels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "rpc/transports/channel_kinds.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/puppet_channel.h"
#include "tests/support/within.h"

namespace baton::rpc {
namespace {

class ChannelsTest : public ::testing::Test {
 protected:
  // The leases in the next frame.
  std::vector<uint64_t> TakeReleased() {
    wire::ChannelFrame frame;
    EXPECT_TRUE(frame.ParseFromString(channels_->TakeFrame()));
    if (frame.released_size() == 0) return {};
    const auto& leases = frame.released(0).leases();
    return {leases.begin(), leases.end()};
  }

  const std::shared_ptr<PuppetKind> kind_ = std::make_shared<PuppetKind>(9);
  Timer timer_{"test-channels"};
  std::atomic<int> woken_{0};
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

TEST_F(ChannelsTest, LeasesAreReleasedInTimeOrWithAMessage) {
  using std::chrono::milliseconds;
  const auto release = [this](uint64_t lease, milliseconds within) {
    kind_->made->port->Release(lease, within);
  };
  release(1, milliseconds(50));
  EXPECT_EQ(TakeReleased(), std::vector<uint64_t>{1}) << "with a message";
  release(2, std::chrono::hours(1));
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_EQ(woken_, 0) << "the one that was due has been sent";
  release(3, milliseconds(1));
  EXPECT_TRUE(baton::testing::Within(std::chrono::seconds(30),
                                     [this] { return woken_ == 1; }));
  EXPECT_EQ(TakeReleased(), (std::vector<uint64_t>{2, 3}));
  for (uint64_t lease = 4; lease < 4 + 32; ++lease)
    release(lease, std::chrono::hours(1));
  EXPECT_TRUE(baton::testing::Within(std::chrono::seconds(30),
                                     [this] { return woken_ == 2; }));
  EXPECT_EQ(TakeReleased().size(), 32u);
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
