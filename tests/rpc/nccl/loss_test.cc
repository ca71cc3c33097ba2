// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/rpc/nccl/nccl_ends.h"

// Connections that end, and lines that do.
namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

float First(const Tensor& tensor) {
  return static_cast<const float*>(tensor.raw_data())[0];
}

class PatientNccl : public NcclTest {
 protected:
  PatientNccl()
      : NcclTest({.trusted_fabric = true, .grace = std::chrono::hours(1)}) {}
};

TEST_F(PatientNccl, WhatWasUnderWayMayStillCome) {
  Open();
  const int before = fabric_->posts;
  const auto [tensor, got] = SendStuck();
  EXPECT_EQ(fabric_->posts, before + 2);
  Lose();
  fabric_->stuck = false;
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(got, tensor));
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
}

TEST_F(PatientNccl, WhatWasNotUnderWayIsLostAtOnce) {
  Open();
  const auto written = fabric_->StartWriting();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  Lose();
  *written = true;
  EXPECT_FALSE(given_.back().Await(kSoon).ok());
}

TEST_F(NcclTest, OfALostPeerWhatDidNotComeIsNoNumber) {
  Open();
  const auto [tensor, got] = SendStuck();
  Lose();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
  EXPECT_TRUE(std::isnan(First(got)));
}

TEST_F(NcclTest, OfALostReceiverEverythingComesBack) {
  Open();
  fabric_->stuck = true;
  Tensor asked = alice_.gpu->Numbers(100), out = alice_.gpu->Numbers(50);
  const std::weak_ptr<Storage> storages[] = {asked.storage(), out.storage()};
  ASSERT_TRUE(Import(asked, Export(asked)).ok());
  Export(out);
  alice_.channel->OnLost();
  EXPECT_FALSE(alice_.channel->Export(out).has_value());
  for (Tensor* tensor : {&asked, &out}) {
    tensor->storage()->use()->Write(Stream::Default(Device::Cuda(0)));
    *tensor = Tensor();
  }
  for (const auto& storage : storages)
    EXPECT_TRUE(Within([&] { return storage.expired(); }));
  EXPECT_TRUE(Within([&] { return alice_.channel->info().leases == 0; }));
}

TEST_F(NcclTest, ALineThatFailsEndsTheConnection) {
  Open();
  const auto [tensor, got] = SendStuck();
  fabric_->failing = true;
  EXPECT_THAT(alice_.port->AwaitBroken(), HasSubstr("NCCL: it fails"));
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value());
  Lose();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
  EXPECT_TRUE(std::isnan(First(got)));
}

TEST_F(NcclTest, AWorkerWhoseLinesFailAgainAndAgainOffersNoMore) {
  const Tensor tensor = alice_.gpu->Numbers(100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(alice_.kind->Offer().ok());
    Open();
    ASSERT_TRUE(Import(tensor, Export(tensor)).ok());
    fabric_->failing = true;
    bob_.channel->OnSaid("\xff\xff");
    EXPECT_NE(bob_.port->AwaitBroken(), "");
    Lose();
    EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
    fabric_->failing = false;
  }
  EXPECT_EQ(bob_.kind->Offer().status().message(), "it has failed 3 times");
}

TEST_F(NcclTest, AnotherConnectionHasLinesOfItsOwn) {
  Open();
  Lose();
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor)) << "of the next connection";
}

// As a launch may: until the lines of another lost peer are aborted, too.
TEST_F(NcclTest, ALossIsDealtWithWhileLaunchesHang) {
  Open();
  const Sent sent = SendStuck();
  fabric_->hanging = true;
  Lose();
  EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
  fabric_->hanging = false;
}

class ClingingNccl : public NcclTest {
 protected:
  ClingingNccl()
      : NcclTest({.trusted_fabric = true,
                  .aborting = std::chrono::milliseconds(20)}) {}
};

TEST_F(ClingingNccl, NobodyWaitsForAnAbortThatDoesNotEnd) {
  Open();
  const auto [tensor, got] = SendStuck();
  fabric_->clinging = true;
  Lose();
  tensor.storage()->use()->Write(Stream::Default(Device::Cuda(0)));
  EXPECT_TRUE(std::isnan(First(got)));
  EXPECT_FALSE(AwaitAborts(std::chrono::milliseconds(1)));
  fabric_->clinging = false;
}

}  // namespace
}  // namespace baton::rpc
