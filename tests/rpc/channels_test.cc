// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/channels.h"

#include <gtest/gtest.h>

#include <utility>

namespace baton::rpc {
namespace {

// A channel that does what the test asks its port for.
class Puppet final : public Channel {
 public:
  explicit Puppet(std::shared_ptr<ChannelPort> its) : port(std::move(its)) {}
  void Start() override {}
  void OnSaid(std::string) override {}
  std::optional<Ticket> Export(const Tensor&) override { return Ticket{}; }
  void Withdraw(uint64_t) override {}
  absl::StatusOr<Tensor> Import(const TensorSpec&,
                                const std::string&) override {
    return Tensor::Ones({1});
  }
  absl::Status OnReleased(uint64_t) override { return absl::OkStatus(); }
  void OnLost() override { lost = true; }
  TensorChannelInfo info() const override { return {}; }

  const std::shared_ptr<ChannelPort> port;
  bool lost = false;
};

class PuppetKind final : public ChannelKind {
 public:
  uint32_t id() const override { return 9; }
  std::string name() const override { return "puppets"; }
  absl::StatusOr<std::string> Offer() override { return std::string(); }
  absl::StatusOr<std::shared_ptr<Channel>> Open(
      const Ends&, std::shared_ptr<ChannelPort> port) override {
    return made = std::make_shared<Puppet>(std::move(port));
  }
  std::shared_ptr<Puppet> made;
};

class ChannelsTest : public testing::Test {
 protected:
  const std::shared_ptr<PuppetKind> kind_ = std::make_shared<PuppetKind>();
  Timer timer_{"test-channels"};
  int woken_ = 0;
  const std::shared_ptr<Channels> channels_ =
      Channels::Make({kind_}, {.self = "alice",
                               .peer = "bob",
                               .dialed = true,
                               .ours = OffersOf({kind_}),
                               .theirs = OffersOf({kind_}),
                               .timer = &timer_,
                               .wake = [this] { ++woken_; }});
};

TEST_F(ChannelsTest, AChannelThatBreaksSaysWhyOnce) {
  kind_->made->port->Opened();
  EXPECT_TRUE(channels_->Export(Tensor::Ones({1})).has_value());
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

}  // namespace
}  // namespace baton::rpc
