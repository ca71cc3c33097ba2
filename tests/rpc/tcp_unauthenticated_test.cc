// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "rpc/channels/tcp_connect.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/security.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/tcp_ends.h"

// Those who connect and are not let in, and those who are and speak as nobody
// should.
namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

void Await(const Fd& socket, short events) {
  pollfd one{.fd = socket.get(), .events = events, .revents = 0};
  ASSERT_EQ(poll(&one, 1, 30'000), 1);
}

// Without a key.
Fd Connect(uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  EXPECT_EQ(
      getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &hints, &found),
      0);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(socket.get(), found->ai_addr, found->ai_addrlen), 0);
  freeaddrinfo(found);
  return socket;
}

void Write(const Fd& socket, const std::string& bytes) {
  EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Until as many have come or the socket ends.
std::string Read(const Fd& socket, size_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    Await(socket, POLLIN);
    char byte;
    if (recv(socket.get(), &byte, 1, 0) != 1) break;
    bytes.push_back(byte);
  }
  return bytes;
}

wire::TcpOffer Parsed(const std::string& offer) {
  wire::TcpOffer parsed;
  EXPECT_TRUE(parsed.ParseFromString(offer));
  return parsed;
}

uint16_t PortOfOffer(const std::string& offer) {
  return static_cast<uint16_t>(Parsed(offer).port());
}

class TcpUnauthenticated : public TcpTest {
 protected:
  static Alter WithPort(uint16_t port) {
    return [port](const std::string& offer) {
      wire::TcpOffer altered = Parsed(offer);
      altered.set_port(port);
      return altered.SerializeAsString();
    };
  }
};

TEST_F(TcpUnauthenticated, AWrongKeyIsNotLetIn) {
  Connect([](const std::string& offer) {
    wire::TcpOffer altered = Parsed(offer);
    altered.mutable_key()->at(7) ^= 1;
    return altered.SerializeAsString();
  });
  EXPECT_THAT(alice_.port->AwaitSettled(), HasSubstr("closed the socket"));
  EXPECT_THAT(bob_.port->AwaitSettled(), HasSubstr("there: 127.0.0.1"));
  EXPECT_FALSE(alice_.channel->Export(Bytes(50'000, 1)).has_value());
}

TEST_F(TcpUnauthenticated, NobodyListens) {
  uint16_t port = 0;
  {
    const auto socket = ListenTcp("127.0.0.1", 0);
    ASSERT_TRUE(socket.ok());
    port = *PortOf(socket->front());
  }
  Connect(WithPort(port));
  EXPECT_THAT(alice_.port->AwaitSettled(), HasSubstr("cannot connect"));
  EXPECT_THAT(bob_.port->AwaitSettled(), HasSubstr("cannot connect"));
}

TEST_F(TcpUnauthenticated, WhoAnswersWithAnotherKeyIsNotTalkedTo) {
  const auto socket = ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(socket.ok());
  const uint16_t port = *PortOf(socket->front());
  Connect(WithPort(port));
  Await(socket->front(), POLLIN);
  const Fd accepted(
      accept4(socket->front().get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(Read(accepted, kKeyBytes).size(), kKeyBytes);
  Write(accepted, std::string(kKeyBytes, 'x'));
  EXPECT_EQ(alice_.port->AwaitSettled(), "127.0.0.1, port " +
                                             std::to_string(port) +
                                             ": somebody else answers there");
}

TEST_F(TcpUnauthenticated, ThoseWhoSayNothingMakeRoomForOthers) {
  std::vector<Fd> silent;
  Open();
  const uint16_t port = PortOfOffer(*bob_.kind->Offer());
  for (int i = 0; i < 100; ++i) silent.push_back(rpc::Connect(port));
  // The oldest were sent away for it.
  EXPECT_EQ(Read(silent[0], 1), "");
  EXPECT_EQ(Read(silent[35], 1), "");
  Lose();
  Open();
  EXPECT_EQ(Transfer(alice_, bob_, Bytes(50'000, 5)).numel(), 50'000);
}

TEST_F(TcpUnauthenticated, AKeyServesOnce) {
  const std::string alices = *alice_.kind->Offer(), bobs = *bob_.kind->Offer();
  bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
  const wire::TcpOffer offer = Parsed(bobs), answer = Parsed(alices);
  const Fd first = rpc::Connect(PortOfOffer(bobs)),
           second = rpc::Connect(PortOfOffer(bobs));
  Write(first, offer.key().substr(0, 5));
  Write(first, offer.key().substr(5));
  EXPECT_EQ(Read(first, kKeyBytes), answer.key());
  EXPECT_EQ(bob_.port->AwaitSettled(), "open");
  Write(second, offer.key());
  EXPECT_EQ(Read(second, 1), "");
}

// The test is alice, who was let in.
class TcpHostile : public TcpTest {
 protected:
  void SetUp() override {
    const std::string alices = *alice_.kind->Offer(),
                      bobs = *bob_.kind->Offer();
    bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
    socket_ = rpc::Connect(PortOfOffer(bobs));
    Write(socket_, Parsed(bobs).key());
    ASSERT_EQ(Read(socket_, kKeyBytes).size(), kKeyBytes);
    ASSERT_EQ(bob_.port->AwaitSettled(), "open");
  }
  Imported Promise(uint64_t lease, const Tensor& tensor) {
    wire::TcpTicket ticket;
    ticket.set_lease(lease);
    ticket.set_bytes(tensor.nbytes());
    return *bob_.channel->Import(SpecOf(tensor), ticket.SerializeAsString());
  }
  static std::string Head(uint64_t lease, uint64_t bytes) {
    const uint64_t head[2] = {lease, bytes};
    return {reinterpret_cast<const char*>(head), sizeof(head)};
  }

  Fd socket_;
  const Tensor tensor_ = Bytes(20'000, 9);
};

TEST_F(TcpHostile, BytesMayComeInAnyPieces) {
  const std::string elements(20'000, 9);
  const std::string all =
      Head(7, 20'000) + elements + Head(9, 20'000) + elements;
  const Imported first = Promise(7, tensor_), second = Promise(9, tensor_);
  size_t at = 0;
  for (size_t size = 1; at < all.size(); at += size, size = size % 97 + 1)
    Write(socket_, all.substr(at, size));
  EXPECT_TRUE(first.given.Await(kSoon).ok());
  EXPECT_TRUE(second.given.Await(kSoon).ok());
  EXPECT_TRUE(Equal(first.tensor, tensor_));
  EXPECT_TRUE(Equal(second.tensor, tensor_));
}

TEST_F(TcpHostile, AnotherSizeThanPromisedBreaksTheConnection) {
  const Imported imported = Promise(7, tensor_);
  Write(socket_, Head(7, uint64_t{1} << 62));
  EXPECT_THAT(bob_.port->AwaitBroken(), HasSubstr("for a tensor of 20000"));
  bob_.channel->OnLost();
  EXPECT_FALSE(imported.given.Await(kSoon).ok());
}

TEST_F(TcpHostile, WhatNobodyPromisedIsNotRead) {
  Write(socket_, Head(1, uint64_t{1} << 62));
  const Imported imported = Promise(7, tensor_);
  EXPECT_FALSE(imported.given.Await(std::chrono::milliseconds(50)).ok());
  EXPECT_EQ(bob_.port->broken(), "");
  bob_.channel->OnLost();
  EXPECT_FALSE(imported.given.Await(kSoon).ok());
}

TEST_F(TcpHostile, ASocketThatEndsBreaksTheConnection) {
  const Imported imported = Promise(7, tensor_);
  Write(socket_, Head(7, 20'000) + "some");
  socket_ = Fd();
  EXPECT_THAT(bob_.port->AwaitBroken(), HasSubstr("closed the socket"));
  bob_.channel->OnLost();
  EXPECT_FALSE(imported.given.Await(kSoon).ok());
}

TEST_F(TcpHostile, WordsThatMakeNoSenseBreakTheConnection) {
  bob_.channel->OnControl("\x0a\xff");
  EXPECT_THAT(bob_.port->AwaitBroken(), HasSubstr("no sense"));
}

}  // namespace
}  // namespace baton::rpc
