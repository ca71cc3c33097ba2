// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp.h"

#include <gmock/gmock.h>

#include "rpc/wire.pb.h"
#include "tests/rpc/tcp_ends.h"

namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

std::string OfferReason(const TcpOptions& options) {
  return std::string(MakeTcp(options)->Offer().status().message());
}

TEST(TcpOffers, SayWhyThereIsNone) {
  TcpOptions options = OnLoopback();
  options.listen_host = "";
  EXPECT_EQ(OfferReason(options), "this worker listens on no port");
  const auto other = MakeTcp(OnLoopback());
  wire::TcpOffer offer;
  ASSERT_TRUE(offer.ParseFromString(*other->Offer()));
  options = OnLoopback();
  options.port = static_cast<uint16_t>(offer.port());
  EXPECT_THAT(OfferReason(options), HasSubstr("in use"));
}

TEST(TcpOffers, OfAPeerAreChecked) {
  const auto kind = MakeTcp(OnLoopback());
  const std::string ours = *kind->Offer();
  const auto port = std::make_shared<TestPort>();
  const auto open = [&](const std::function<void(wire::TcpOffer&)>& alter) {
    wire::TcpOffer theirs;
    EXPECT_TRUE(theirs.ParseFromString(ours));
    alter(theirs);
    return kind->Open({true, ours, theirs.SerializeAsString()}, port).ok();
  };
  EXPECT_TRUE(open([](wire::TcpOffer&) {}));
  EXPECT_FALSE(open([](wire::TcpOffer& offer) { offer.set_port(0); }));
  EXPECT_FALSE(open([](wire::TcpOffer& offer) { offer.set_port(65536); }));
  EXPECT_FALSE(open([](wire::TcpOffer& offer) { offer.clear_host(); }));
  EXPECT_FALSE(open([](wire::TcpOffer& offer) { offer.set_key("short"); }));
  EXPECT_FALSE(kind->Open({true, ours, "\x0a\xff"}, port).ok());
}

INSTANTIATE_TEST_SUITE_P(In, TcpWays, ::testing::Bool(), [](const auto& info) {
  return info.param ? "Tls" : "Clear";
});

TEST_P(TcpWays, TensorsOfAnySizeTravelBothWays) {
  Open();
  for (const int64_t count : {1, 5000, 300'000, 20'000'000}) {
    const Tensor tensor = Tensor::Arange(count);
    EXPECT_TRUE(Equal(Transfer(alice_, bob_, tensor), tensor)) << count;
    EXPECT_TRUE(Equal(Transfer(bob_, alice_, tensor), tensor)) << count;
  }
  const TensorChannelInfo info = alice_.channel->info();
  EXPECT_EQ(info.tensors_sent, 4u);
  EXPECT_EQ(info.tensors_received, 4u);
  EXPECT_EQ(info.bytes_sent, 8u * 20'305'001);
  EXPECT_EQ(info.bytes_received, info.bytes_sent);
  EXPECT_EQ(info.leases, 0u);
  EXPECT_EQ(info.leased_bytes, 0u);
}

TEST_P(TcpWays, AWriteOfATensorOnItsWayWaitsForNoReader) {
  Open();
  const Tensor tensor = Bytes(kMuch, 1);
  const Sent sent = Send(alice_, tensor);
  tensor.Fill(2);
  EXPECT_FALSE(sent.left.ready());
  const auto imported = Import(bob_, tensor, sent.ticket);
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(imported->given.Await(kSoon).ok());
  EXPECT_TRUE(Equal(imported->tensor, Bytes(kMuch, 1)));
  EXPECT_TRUE(Equal(tensor, Bytes(kMuch, 2)));
}

TEST_P(TcpWays, LayoutsAreKeptAndGapsAreNotSent) {
  Open();
  const Tensor plain = Tensor::Arange(2 * 3 * 4 * 5).Reshape({2, 3, 4, 5});
  const Tensor image = plain.Contiguous(MemoryFormat::kChannelsLast);
  const Tensor got = Transfer(alice_, bob_, image);
  EXPECT_EQ(got.SuggestFormat(), MemoryFormat::kChannelsLast);
  EXPECT_TRUE(Equal(got, plain));
  const Tensor part = plain.Slice(3, 1, 2);
  EXPECT_TRUE(Equal(Transfer(alice_, bob_, part), part));
}

TEST_P(TcpWays, ManyTravelAtOnceInEitherOrderOfTheirTickets) {
  Open();
  std::vector<Tensor> tensors;
  std::vector<Sent> sent;
  for (int i = 0; i < 200; ++i) {
    tensors.push_back(Bytes(20'000 + 1000 * i, i));
    sent.push_back(Send(alice_, tensors.back()));
    const Tensor back = Bytes(100'000, i);
    EXPECT_TRUE(Equal(Transfer(bob_, alice_, back), back));
  }
  std::vector<Imported> imported;
  for (size_t i = 200; i-- > 0;) {
    auto one = Import(bob_, tensors[i], sent[i].ticket);
    ASSERT_TRUE(one.ok()) << one.status();
    imported.push_back(*std::move(one));
  }
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(sent[i].left.Await(kSoon).ok());
    EXPECT_TRUE(imported[199 - i].given.Await(kSoon).ok());
    EXPECT_TRUE(Equal(imported[199 - i].tensor, tensors[i]));
  }
}

TEST_P(TcpWays, WhatWasNotPromisedYetWaitsAtTheSender) {
  Open();
  const Tensor much = Bytes(kMuch, 3), more = Bytes(50'000, 4);
  const Sent first = Send(alice_, much), second = Send(alice_, more);
  const auto later = Import(bob_, more, second.ticket);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_FALSE(first.left.Await(std::chrono::milliseconds(100)).ok());
  EXPECT_FALSE(later->given.ready());
  EXPECT_EQ(alice_.channel->info().leases, 2u);
  const auto imported = Import(bob_, much, first.ticket);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->given.Await(kSoon).ok());
  EXPECT_TRUE(first.left.Await(kSoon).ok());
  EXPECT_TRUE(Equal(imported->tensor, much));
  EXPECT_TRUE(later->given.Await(kSoon).ok());
  EXPECT_TRUE(Equal(later->tensor, more));
}

TEST_P(TcpWays, WhatIsWithdrawnIsNeitherSentNorKept) {
  Open();
  const Tensor tensor = Bytes(50'000, 3);
  const auto ticket = alice_.channel->Export(tensor);
  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(alice_.channel->info().leases, 1u);
  alice_.channel->Withdraw(ticket->lease);
  EXPECT_EQ(alice_.channel->info().leases, 0u);
  EXPECT_EQ(tensor.storage().use_count(), 1);
  const Tensor next = Bytes(60'000, 4);
  EXPECT_TRUE(Equal(Transfer(alice_, bob_, next), next));
}

TEST_P(TcpWays, WhatHasLeftIsLetGoOf) {
  Open();
  const Tensor tensor = Bytes(1'000'000, 3);
  Transfer(alice_, bob_, tensor);
  EXPECT_TRUE(Within([&] { return tensor.storage().use_count() == 1; }));
}

TEST_P(TcpWays, BoolsAreCheckedAsTheyCome) {
  Open();
  const Tensor bools = Tensor::Ones({kMuch / 8}, {.dtype = DType::kBool});
  EXPECT_TRUE(Equal(Transfer(alice_, bob_, bools), bools));
  const Tensor bytes = Bytes(bools.numel(), 1);
  bytes.data<uint8_t>()[bytes.numel() - 1] = 2;
  const Sent sent = Send(alice_, bytes);
  const auto imported = Import(bob_, bools, sent.ticket);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(bob_.port->AwaitBroken(),
            "a bool tensor with bytes other than 0 and 1");
}

TEST_P(TcpWays, SomeTensorsTravelOtherwise) {
  const Tensor tensor = Bytes(50'000, 3);
  Connect();
  EXPECT_EQ(alice_.port->AwaitSettled(), "open");
  EXPECT_EQ(bob_.port->AwaitSettled(), "open");
  EXPECT_FALSE(alice_.channel->Export(Tensor::Ones({0})));
  std::vector<uint64_t> leases;
  while (const auto ticket = alice_.channel->Export(tensor))
    leases.push_back(ticket->lease);
  EXPECT_EQ(leases.size(), 1024u);
  EXPECT_EQ(alice_.channel->info().declined, 1u);
  alice_.channel->Withdraw(leases[0]);
  EXPECT_TRUE(alice_.channel->Export(tensor).has_value());
  alice_.channel->OnLost();
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value());
}

TEST_P(TcpWays, TicketsThatMakeNoSenseAreRefused) {
  Open();
  const Tensor tensor = Bytes(50'000, 3);
  const auto import = [&](const TensorSpec& spec, uint64_t lease,
                          uint64_t bytes) {
    wire::TcpTicket ticket;
    ticket.set_lease(lease);
    ticket.set_bytes(bytes);
    return bob_.channel->Import(spec, ticket.SerializeAsString())
        .status()
        .code();
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(import(SpecOf(tensor), 7, 49'999), kBad);
  EXPECT_EQ(import(SpecOf(Tensor::Ones({0})), 7, 0), kBad);
  EXPECT_EQ(import(SpecOf(tensor), 7, 50'000), absl::StatusCode::kOk);
  EXPECT_EQ(import(SpecOf(tensor), 7, 50'000), kBad);
  EXPECT_EQ(bob_.channel->Import(SpecOf(tensor), "\x08").status().code(), kBad);
  EXPECT_FALSE(bob_.channel->OnReleased(1).ok());
}

}  // namespace
}  // namespace baton::rpc
