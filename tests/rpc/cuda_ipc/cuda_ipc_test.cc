// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/cuda_ipc.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "rpc/channels/channel.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/cuda_ipc/ipc_ends.h"

namespace baton::rpc {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(CudaIpcTest, ATensorComesToTheReceiversOwnGpu) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->device(), Device::Cuda(1));
  EXPECT_TRUE(Equal(*got, tensor));
  PassReleases();
  EXPECT_EQ(alice_.channel->info().leases, 0u);
  EXPECT_EQ(bob_.channel->info().tensors_received, 2u);
}

TEST_F(CudaIpcTest, ASegmentIsPassedOnce) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value()) << "not passed yet";
  for (int i = 0; i < 300; ++i) {
    const Tensor part = tensor.Slice(0, i % 50, 50 + i % 50);
    const auto got = Import(part, Export(part));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Equal(*got, part));
    PassReleases();
  }
  EXPECT_EQ(machine_->shared, 3) << "a proof of each, and the tensor's";
}

TEST_F(CudaIpcTest, EveryGpuOfTheSenderIsProved) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(10, 1);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(CudaIpcTest, AWriterWaitsUntilItHasBeenRead) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket first = Export(tensor);
  alice_.channel->Withdraw(first.lease);
  machine_->busy = true;
  const Ticket ticket = Export(tensor);
  const auto got = Import(tensor, ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  std::atomic<bool> wrote{false};
  std::thread writer([&] {
    tensor.storage()->use()->Write(Stream::Default(Device::Cuda(0)));
    wrote = true;
  });
  machine_->busy = false;
  const auto released = bob_.port->AwaitReleased();
  EXPECT_EQ(released, std::vector<uint64_t>{ticket.lease});
  EXPECT_FALSE(wrote) << "the sender does not know yet";
  EXPECT_TRUE(alice_.channel->OnReleased(ticket.lease).ok());
  writer.join();
  EXPECT_TRUE(wrote);
}

// Elsewhere it goes with a message, if one follows, which wakes nobody.
TEST_F(CudaIpcTest, ALeaseIsReleasedSoonWhereWritersWait) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  ASSERT_TRUE(Import(tensor, Export(tensor)).ok());
  PassReleases();
  EXPECT_EQ(bob_.port->within(), std::chrono::milliseconds(10));
  const Ticket ticket = Export(tensor);
  std::thread writer([&] {
    tensor.storage()->use()->Write(Stream::Default(Device::Cuda(0)));
  });
  const Tensor other = alice_.gpu->Numbers(100);
  EXPECT_TRUE(Within([&] {
    EXPECT_TRUE(Import(other, Export(other)).ok());
    PassReleases();
    return bob_.port->within() == std::chrono::milliseconds(1);
  }));
  ASSERT_TRUE(Import(tensor, ticket).ok());
  PassReleases();
  writer.join();
}

TEST_F(CudaIpcTest, AStorageStaysWhileItIsRead) {
  Open();
  Tensor tensor = alice_.gpu->Numbers(100);
  const std::weak_ptr<Storage> storage = tensor.storage();
  const TensorSpec spec = SpecOf(tensor);
  alice_.channel->Withdraw(Export(tensor).lease);
  machine_->busy = true;
  const Ticket ticket = Export(tensor);
  tensor = Tensor();
  const auto got = bob_.channel->Import(spec, ticket.ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(storage.expired());
  machine_->busy = false;
  PassReleases();
  EXPECT_TRUE(storage.expired());
}

TEST_F(CudaIpcTest, SoManyTensorsAreOnTheirWayAtMost) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(10);
  std::vector<Ticket> tickets = {Export(tensor)};
  while (auto ticket = alice_.channel->Export(tensor))
    tickets.push_back(*ticket);
  EXPECT_EQ(tickets.size(), 64u);
  EXPECT_EQ(alice_.channel->info().leased_bytes, 64u * 40);
  for (const Ticket& ticket : tickets)
    EXPECT_TRUE(alice_.channel->OnReleased(ticket.lease).ok());
  EXPECT_TRUE(alice_.channel->Export(tensor).has_value());
  EXPECT_EQ(alice_.channel->OnReleased(tickets[0].lease).code(), kInvalid);
}

TEST_F(CudaIpcTest, WhatCannotBeSharedIsDeclined) {
  Open();
  EXPECT_FALSE(alice_.channel->Export(Tensor::Ones({5000})).has_value());
  const Tensor tensor = alice_.gpu->Numbers(10);
  Export(tensor);
  char bytes[8] = {};
  const Tensor foreign =
      Tensor::FromStorage(Storage::Wrap(bytes, 8, Device::Cuda(0), nullptr),
                          DType::kF32, {2}, {1}, 0);
  EXPECT_FALSE(alice_.channel->Export(foreign).has_value());
  const Tensor bools =
      Tensor::FromStorage(tensor.storage(), DType::kBool, {8}, {1}, 0);
  EXPECT_FALSE(alice_.channel->Export(bools).has_value());
  EXPECT_FALSE(alice_.channel->Export(tensor.Slice(0, 0, 0)).has_value());
}

TEST_F(CudaIpcTest, TicketsThatMakeNoSenseAreRefused) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const TensorSpec spec = SpecOf(tensor);
  wire::CudaIpcTicket good;
  ASSERT_TRUE(good.ParseFromString(Export(tensor).ticket));
  const auto refused =
      [&](const std::function<void(wire::CudaIpcTicket&)>& alter) {
        wire::CudaIpcTicket ticket = good;
        alter(ticket);
        return bob_.channel->Import(spec, ticket.SerializeAsString())
            .status()
            .code();
      };
  constexpr uint64_t kEnd = FakeGpu::kSegmentBytes;
  EXPECT_EQ(refused([](auto& t) { t.set_segment(99); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_segment(0); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(kEnd); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(kEnd - 396); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(~uint64_t{3}); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(2); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_bytes(404); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_bytes(~uint64_t{0}); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_event(64); }), kInvalid);
  EXPECT_EQ(bob_.channel->Import(spec, "\xff\xff").status().code(), kInvalid);
  TensorSpec bools = spec;
  bools.dtype = DType::kBool;
  bools.shape = Shape({400});
  EXPECT_EQ(
      bob_.channel->Import(bools, good.SerializeAsString()).status().code(),
      kInvalid);
  machine_->busy = true;
  EXPECT_EQ(refused([](auto&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(refused([](auto&) {}), kInvalid) << "the same lease twice";
  EXPECT_EQ(refused([](auto& t) { t.set_lease(77); }), kInvalid)
      << "another lease with its event";
  EXPECT_EQ(refused([](auto& t) { t.set_event(t.event() + 1); }), kInvalid)
      << "its lease with another event";
}

TEST_F(CudaIpcTest, WhatIsWrittenIsThereAtOnce) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(given_.valid());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(CudaIpcTest, WhatIsBeingWrittenIsGivenOnceItIsCopied) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket ticket = Export(tensor);
  machine_->busy = true;
  const auto got = Import(tensor, ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(given_.valid());
  EXPECT_FALSE(given_.Await(std::chrono::milliseconds(20)).ok());
  EXPECT_FALSE(Equal(*got, tensor));
  machine_->busy = false;
  EXPECT_TRUE(given_.Await(kSoon).ok());
  EXPECT_TRUE(Equal(*got, tensor));
  PassReleases();
  EXPECT_EQ(alice_.channel->info().leases, 0u);
}

TEST_F(CudaIpcTest, OfALostSenderWhatWasNotReadyIsNotWaitedFor) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  alice_.channel->Withdraw(Export(tensor).lease);
  machine_->busy = true;  // for ever
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_GT(machine_->opened, 0);
  bob_.channel->OnLost();
  EXPECT_EQ(given_.Await(kSoon).code(), absl::StatusCode::kCancelled);
  alice_.channel->OnLost();
  EXPECT_TRUE(Within([&] { return machine_->opened == 0; }));
  EXPECT_TRUE(Within([&] { return machine_->shared == 0; }));
}

// A stream may wait for the lost peer until whoever waits for the word of the
// loss ends that.
TEST_F(CudaIpcTest, ALossIsToldBeforeTheGpuLetsGo) {
  Open();
  Export(alice_.gpu->Numbers(100));
  const Promise<void> told;
  machine_->before_release = [told] {
    EXPECT_TRUE(told.future().Await(kSoon).ok());
  };
  bob_.channel->OnLost();
  alice_.channel->OnLost();
  told.Set(absl::OkStatus());
  EXPECT_TRUE(Within([&] { return machine_->opened == 0; }));
  EXPECT_TRUE(Within([&] { return machine_->shared == 0; }));
}

TEST_F(CudaIpcTest, OfALostReceiverEverythingComesBack) {
  Open();
  Tensor tensor = alice_.gpu->Numbers(100);
  const std::weak_ptr<Storage> storage = tensor.storage();
  Export(tensor);
  alice_.channel->OnLost();
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value());
  EXPECT_EQ(alice_.channel->info().leases, 0u);
  EXPECT_EQ(alice_.channel->info().capacity_bytes, 0u);
  tensor.storage()->use()->Write(Stream::Default(Device::Cuda(0)));
  tensor = Tensor();
  EXPECT_TRUE(Within([&] { return storage.expired(); }));
}

TEST_F(CudaIpcTest, AClosedSegmentIsUnknown) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket ticket = Export(tensor);
  wire::CudaIpcTicket parsed;
  ASSERT_TRUE(parsed.ParseFromString(ticket.ticket));
  wire::CudaIpcControl control;
  control.set_close(parsed.segment());
  const int before = machine_->opened;
  bob_.channel->OnControl(control.SerializeAsString());
  EXPECT_TRUE(Within([&] { return machine_->opened == before - 1; }));
  EXPECT_EQ(Import(tensor, ticket).status().code(), kInvalid);
}

TEST_F(CudaIpcTest, MemoryThatReadsOtherwiseElsewhereIsAReason) {
  machine_->broken = true;
  Connect();
  EXPECT_EQ(alice_.port->AwaitSettled(),
            "another process reads something else than was written");
  EXPECT_EQ(bob_.port->AwaitSettled(),
            "another process reads something else than was written");
  EXPECT_FALSE(alice_.channel->Export(alice_.gpu->Numbers(9)).has_value());
}

TEST_F(CudaIpcTest, AHandleThatCannotBeOpenedIsAReason) {
  const std::string alices = OfferOf(alice_, "a"), bobs = OfferOf(bob_, "b");
  alice_.channel = *alice_.kind->Open({true, alices, bobs}, alice_.port);
  // As on a machine that looks like this one.
  IpcSide other(std::make_shared<FakeMachine>(), 1);
  other.channel = *other.kind->Open({false, bobs, alices}, other.port);
  alice_.port->Connect(other.channel);
  other.port->Connect(alice_.channel);
  alice_.channel->Start();
  EXPECT_EQ(alice_.port->AwaitSettled(), "an invalid handle");
  EXPECT_EQ(other.port->AwaitSettled(), "an invalid handle");
}

TEST_F(CudaIpcTest, SegmentsThatMakeNoSenseAreNotOpened) {
  Open();
  const auto failure =
      [&](const std::function<void(wire::CudaIpcControl::Passed&)>& fill) {
        wire::CudaIpcControl control;
        control.mutable_passed()->set_segment(50);
        control.mutable_passed()->set_bytes(4096);
        fill(*control.mutable_passed());
        const int before = machine_->opened;
        bob_.channel->OnControl(control.SerializeAsString());
        // The answer is to a segment that alice never passed.
        return Within([&] { return machine_->opened == before; });
      };
  EXPECT_TRUE(failure([](auto& p) { p.set_bytes(0); }));
  EXPECT_TRUE(failure([](auto& p) { p.set_handle("guessed"); }));
  EXPECT_TRUE(failure([](auto& p) { p.set_proof_bytes(uint64_t{1} << 40); }));
  const Tensor tensor = alice_.gpu->Numbers(100);
  EXPECT_TRUE(Import(tensor, Export(tensor)).ok());
}

TEST_F(CudaIpcTest, WordsThatMakeNoSenseEndIt) {
  const std::string alices = OfferOf(alice_, "a"), bobs = OfferOf(bob_, "b");
  alice_.channel = *alice_.kind->Open({false, alices, bobs}, alice_.port);
  alice_.channel->OnControl("\xff\xff");
  EXPECT_EQ(alice_.port->AwaitSettled(), "it says what makes no sense");
}

}  // namespace
}  // namespace baton::rpc
