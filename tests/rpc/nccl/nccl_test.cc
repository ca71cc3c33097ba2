// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/nccl.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>
#include <vector>

#include "rpc/wire.pb.h"
#include "tests/rpc/nccl/nccl_ends.h"

namespace baton::rpc {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(NcclTest, ATensorComesToTheReceiversOwnGpu) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->device(), Device::Cuda(1));
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
  EXPECT_EQ(alice_.channel->info().bytes_sent, 400u);
  EXPECT_EQ(bob_.channel->info().tensors_received, 1u);
}

TEST_F(NcclTest, BothWaysAtOnce) {
  Open();
  const Tensor ours = alice_.gpu->Numbers(1000);
  const Tensor theirs = bob_.gpu->Numbers(500, 1);
  for (int i = 0; i < 50; ++i) {
    const auto ticket = bob_.channel->Export(theirs);
    ASSERT_TRUE(ticket.has_value());
    const auto there = Import(ours, Export(ours));
    const auto back = alice_.channel->Import(SpecOf(theirs), ticket->ticket);
    ASSERT_TRUE(there.ok() && back.ok());
    ASSERT_TRUE(Settled());
    EXPECT_TRUE(Equal(*there, ours));
    EXPECT_TRUE(Equal(back->tensor, theirs));
  }
}

TEST_F(NcclTest, MessagesMayOvertakeEachOther) {
  Open();
  std::vector<Tensor> tensors;
  std::vector<Ticket> tickets;
  for (int i = 0; i < 100; ++i) {
    tensors.push_back(alice_.gpu->Numbers(10 + i));
    tickets.push_back(Export(tensors.back()));
  }
  std::vector<Tensor> got(100);
  for (size_t i = 0; i < 100; ++i) {
    const size_t at = i * 37 % 100;
    const auto tensor = Import(tensors[at], tickets[at]);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    got[at] = *tensor;
  }
  ASSERT_TRUE(Settled());
  for (size_t i = 0; i < 100; ++i) EXPECT_TRUE(Equal(got[i], tensors[i])) << i;
}

TEST_F(NcclTest, ATensorOfManyShapesIsTheSame) {
  Open();
  const Tensor numbers = alice_.gpu->Numbers(120).Reshape({2, 3, 4, 5});
  const auto got = Import(numbers, Export(numbers));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(Settled());
  EXPECT_EQ(got->shape(), numbers.shape());
  EXPECT_TRUE(Equal(*got, numbers));
}

TEST_F(NcclTest, ATensorIsPromisedOnceAlsoWhileItsMemoryIsMade) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket ticket = Export(tensor);
  absl::Status again;
  bob_.nccl->making = [&] {
    again = bob_.channel->Import(SpecOf(tensor), ticket.ticket).status();
  };
  const auto got = Import(tensor, ticket);
  EXPECT_EQ(again.code(), kInvalid);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(NcclTest, AConnectionMayEndWhileMemoryIsMade) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(100);
  const Ticket ticket = Export(tensor);
  bob_.nccl->making = [&] { bob_.channel->OnLost(); };
  EXPECT_EQ(Import(tensor, ticket).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(bob_.channel->info().tensors_received, 0u);
}

TEST_F(NcclTest, ATensorThatIsBeingWrittenHoldsNobodyUp) {
  Open();
  const auto written = fabric_->StartWriting();
  const Tensor late = alice_.gpu->Numbers(100);
  const auto first = Import(late, Export(late));
  fabric_->StopWriting();
  const Tensor early = alice_.gpu->Numbers(200);
  const auto second = Import(early, Export(early));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(Left(1));
  EXPECT_TRUE(Equal(*second, early));
  EXPECT_FALSE(given_.front().ready());
  *written = true;
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*first, late));
}

TEST_F(NcclTest, ATensorMayBeUsedOnceItsReceiveWasGivenToTheGpu) {
  Open();
  fabric_->busy = true;
  const int before = fabric_->posts;
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(Within([&] { return fabric_->posts == before + 1; }));
  ASSERT_TRUE(HaveLookedAgain());
  EXPECT_EQ(fabric_->posts, before + 1) << "the send was not given";
  EXPECT_FALSE(given_.back().ready());
  fabric_->stuck = true;
  fabric_->busy = false;
  EXPECT_TRUE(Given()) << "though it has not come";
  EXPECT_EQ(fabric_->posts, before + 2);
  fabric_->stuck = false;
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(NcclTest, AWithdrawnTensorIsNotWaitedFor) {
  Open();
  const Tensor tensors[] = {alice_.gpu->Numbers(10), alice_.gpu->Numbers(20),
                            alice_.gpu->Numbers(30)};
  const Ticket tickets[] = {Export(tensors[0]), Export(tensors[1]),
                            Export(tensors[2])};
  alice_.channel->Withdraw(tickets[1].lease);
  EXPECT_EQ(alice_.channel->info().leases, 2u);
  for (const int i : {2, 0}) {
    const auto got = Import(tensors[i], tickets[i]);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Left(i == 2 ? 1 : 0));
    EXPECT_TRUE(Equal(*got, tensors[i]));
  }
  ASSERT_TRUE(Settled());
  tensors[1].storage()->use()->Write(Stream::Default(Device::Cuda(0)));
}

TEST_F(NcclTest, AWriterWaitsUntilItHasBeenSent) {
  Open();
  fabric_->stuck = true;
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  std::atomic<bool> wrote{false};
  std::thread writer([&] {
    tensor.storage()->use()->Write(Stream::Default(Device::Cuda(0)));
    wrote = !fabric_->stuck;
  });
  EXPECT_TRUE(Given());
  fabric_->stuck = false;
  writer.join();
  EXPECT_TRUE(wrote) << "before it was sent";
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(NcclTest, AStorageStaysUntilItHasBeenSent) {
  Open();
  Sent sent = SendStuck();
  const std::weak_ptr<Storage> storage = sent.tensor.storage();
  sent.tensor = Tensor();
  EXPECT_FALSE(storage.expired());
  fabric_->stuck = false;
  EXPECT_TRUE(Within([&] { return storage.expired(); }));
}

TEST_F(NcclTest, SoManyTensorsAreOnTheirWayAtMost) {
  Open();
  const Tensor tensor = alice_.gpu->Numbers(10);
  std::vector<Ticket> tickets;
  while (auto ticket = alice_.channel->Export(tensor))
    tickets.push_back(*ticket);
  EXPECT_EQ(tickets.size(), 256u);
  EXPECT_EQ(alice_.channel->info().leased_bytes, 256u * 40);
  EXPECT_EQ(alice_.channel->info().declined, 1u);
  for (const Ticket& ticket : tickets) ASSERT_TRUE(Import(tensor, ticket).ok());
  ASSERT_TRUE(Settled());
  EXPECT_EQ(alice_.channel->info().leased_bytes, 0u);
  EXPECT_TRUE(alice_.channel->Export(tensor).has_value());
}

TEST_F(NcclTest, WhatCannotBeSentIsNotTaken) {
  Open();
  const auto takes = [&](const Tensor& tensor) {
    return alice_.channel->Export(tensor).has_value();
  };
  EXPECT_FALSE(takes(Tensor::Ones({5000}))) << "of the CPU";
  EXPECT_FALSE(takes(alice_.gpu->Numbers(10, 1))) << "of another GPU";
  const Tensor tensor = alice_.gpu->Numbers(10);
  EXPECT_FALSE(takes(tensor.Slice(0, 0, 0)));
  EXPECT_FALSE(
      takes(Tensor::FromStorage(tensor.storage(), DType::kBool, {8}, {1}, 0)));
  char bytes[8] = {};
  EXPECT_FALSE(takes(
      Tensor::FromStorage(Storage::Wrap(bytes, 8, Device::Cuda(0), nullptr),
                          DType::kF32, {2}, {1}, 0)))
      << "not the allocator's";
  EXPECT_TRUE(takes(tensor));
}

TEST_F(NcclTest, TicketsThatMakeNoSenseAreRefused) {
  Open();
  fabric_->stuck = true;
  const Tensor tensor = alice_.gpu->Numbers(100);
  const TensorSpec spec = SpecOf(tensor);
  const Ticket ticket = Export(tensor);
  wire::NcclTicket good;
  ASSERT_TRUE(good.ParseFromString(ticket.ticket));
  const auto refused = [&](const TensorSpec& as, uint64_t bytes) {
    wire::NcclTicket altered = good;
    altered.set_bytes(bytes);
    return bob_.channel->Import(as, altered.SerializeAsString())
        .status()
        .code();
  };
  EXPECT_EQ(refused(spec, 404), kInvalid);
  EXPECT_EQ(refused(spec, 0), kInvalid);
  EXPECT_EQ(refused(spec, ~uint64_t{0}), kInvalid);
  EXPECT_EQ(refused({.shape = Shape({0})}, 0), kInvalid);
  EXPECT_EQ(
      refused({.dtype = DType::kBool, .shape = Shape({400}), .bytes = 400},
              400),
      kInvalid);
  EXPECT_EQ(bob_.channel->Import(spec, "\xff\xff").status().code(), kInvalid);
  const auto got = Import(tensor, ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Import(tensor, ticket).status().code(), kInvalid) << "twice";
  EXPECT_EQ(alice_.channel->OnReleased(good.lease()).code(), kInvalid);
  fabric_->stuck = false;
  ASSERT_TRUE(Settled());
  EXPECT_TRUE(Equal(*got, tensor));
}

TEST_F(NcclTest, NobodyPromisesMoreThanIsBelieved) {
  Open();
  const TensorSpec spec{.shape = Shape({1}), .bytes = 4};
  int taken = 0;
  wire::NcclTicket ticket;
  ticket.set_bytes(4);
  do {
    ticket.set_lease(1'000'000 + static_cast<uint64_t>(taken++));
  } while (bob_.channel->Import(spec, ticket.SerializeAsString()).ok());
  EXPECT_EQ(taken, 1025);
  EXPECT_THAT(alice_.port->AwaitBroken(),
              ::testing::HasSubstr("which is not out"));
}

TEST_F(NcclTest, NobodyPromisesMoreBytesThanAreBelieved) {
  Open();
  wire::NcclTicket ticket;
  const auto promise = [&](uint64_t lease, int64_t count) {
    ticket.set_lease(lease);
    ticket.set_bytes(static_cast<uint64_t>(count) * 4);
    return bob_.channel
        ->Import({.shape = Shape({count}), .bytes = ticket.bytes()},
                 ticket.SerializeAsString())
        .status()
        .code();
  };
  EXPECT_EQ(promise(1'000'000, 1), absl::StatusCode::kOk);
  EXPECT_EQ(promise(1'000'001, int64_t{5} << 30), kInvalid);
}

class NcclWordsTest : public NcclTest {
 protected:
  std::string Broken(const std::function<void(wire::NcclWords&)>& fill) {
    wire::NcclWords words;
    fill(words);
    bob_.channel->OnSaid(words.SerializeAsString());
    return bob_.port->AwaitBroken();
  }
};

TEST_F(NcclWordsTest, AskingForWhatIsNotOutEndsTheConnection) {
  Open();
  EXPECT_EQ(Broken([](auto& words) { words.set_ask(77); }),
            "it asks for the tensor 77, which is not out");
  EXPECT_FALSE(bob_.channel->Export(bob_.gpu->Numbers(9, 1)).has_value());
}

TEST_F(NcclWordsTest, AskingTwiceEndsTheConnection) {
  Open();
  fabric_->StartWriting();
  const auto ticket = bob_.channel->Export(bob_.gpu->Numbers(9, 1));
  ASSERT_TRUE(ticket.has_value());
  wire::NcclWords words;
  words.set_ask(ticket->lease);
  bob_.channel->OnSaid(words.SerializeAsString());
  EXPECT_THAT(Broken([&](auto& again) { again = words; }),
              ::testing::HasSubstr("which is not out"));
}

TEST_F(NcclWordsTest, SendingUnaskedEndsTheConnection) {
  Open();
  EXPECT_EQ(Broken([](auto& words) { words.set_sent(5); }),
            "it sends the tensor 5 unasked");
}

TEST_F(NcclWordsTest, LinesForTheSecondTimeEndTheConnection) {
  Open();
  EXPECT_EQ(Broken([](auto& words) { words.mutable_lines(); }),
            "it makes lines for the second time");
}

TEST_F(NcclWordsTest, WordsWithoutSenseEndTheConnection) {
  Open();
  EXPECT_EQ(Broken([](auto&) {}), "it says what makes no sense");
}

}  // namespace
}  // namespace baton::rpc
