// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "rpc/channels/tcp_socket.h"
#include "tests/support/status_matchers.h"

// TLS between two ends of a socket, or with somebody who reads and changes what
// passes between them.
namespace baton::rpc {
namespace {

using testing::IsOk;

std::pair<Fd, Fd> Sockets() {
  int ends[2];
  EXPECT_EQ(
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
      0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TlsSetup SetupOf(bool client, char secret = 's') {
  return {.secret = std::string(32, secret), .client = client};
}

class TlsStream : public ::testing::Test {
 protected:
  void Make(const TlsSetup& client, const TlsSetup& server) {
    std::tie(client_socket_, to_client_) = Sockets();
    std::tie(server_socket_, to_server_) = Sockets();
    client_ = *TcpStream::Tls(std::move(client_socket_), client);
    server_ = *TcpStream::Tls(std::move(server_socket_), server);
  }
  // What the network between the two does with bytes on their way.
  virtual void Pass(std::string& bytes) { seen_ += bytes; }
  void Relay() {
    Relay(to_client_, to_server_, to_be_sent_[0]);
    Relay(to_server_, to_client_, to_be_sent_[1]);
  }
  // `rest` is what the socket had no room for.
  void Relay(const Fd& from, const Fd& to, std::string& rest) {
    std::string bytes(1 << 20, '\0');
    const ssize_t got = recv(from.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (!bytes.empty()) Pass(bytes);
    rest += bytes;
    const ssize_t sent = send(to.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    rest.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  // Until both are through, or one has failed.
  absl::Status Handshake() {
    for (int turn = 0; turn < 20; ++turn) {
      const absl::Status client = client_->Handshake();
      Relay();
      const absl::Status server = server_->Handshake();
      Relay();
      if (client.ok() && server.ok()) return absl::OkStatus();
      for (const absl::Status& one : {client, server})
        if (!one.ok() && !absl::IsCancelled(one)) return one;
    }
    return absl::DeadlineExceededError("no handshake");
  }
  // From the client to the server: what came.
  absl::StatusOr<std::string> Transfer(const std::string& bytes) {
    std::string came;
    size_t sent = 0;
    while (came.size() < bytes.size()) {
      if (sent < bytes.size()) {
        const iovec rest{const_cast<char*>(bytes.data()) + sent,
                         bytes.size() - sent};
        const auto put = client_->Write({&rest, 1});
        if (!put.ok()) return put.status();
        sent += *put;
      }
      Relay();
      char buffer[10'000];
      const iovec parts[2] = {{buffer, 1000}, {buffer + 1000, 9000}};
      const auto got = server_->Read(parts);
      if (!got.ok()) return got.status();
      came.append(buffer, *got);
    }
    return came;
  }

  void ExpectTransfer(const std::string& bytes) {
    const auto came = Transfer(bytes);
    ASSERT_THAT(came, IsOk());
    EXPECT_TRUE(*came == bytes);
  }

  Fd client_socket_, server_socket_, to_client_, to_server_;
  std::shared_ptr<TcpStream> client_, server_;
  std::string to_be_sent_[2];  // to the server, to the client
  std::string seen_;
};

std::string TextPattern(size_t bytes) {
  std::string pattern(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i)
    pattern[i] = static_cast<char>('a' + i % 16);
  return pattern;
}

TEST_F(TlsStream, BytesArriveAndAreNotSeenOnTheWay) {
  Make(SetupOf(true), SetupOf(false));
  ASSERT_THAT(Handshake(), IsOk());
  const std::string bytes = TextPattern(300'000);
  ExpectTransfer(bytes);
  EXPECT_GT(seen_.size(), bytes.size());
  EXPECT_EQ(seen_.find(bytes.substr(0, 16)), std::string::npos);
  EXPECT_EQ(seen_.find(std::string(8, 's')), std::string::npos);  // the secret
}

TEST_F(TlsStream, NothingIsReadWhereNothingCame) {
  Make(SetupOf(true), SetupOf(false));
  ASSERT_THAT(Handshake(), IsOk());
  char byte;
  const iovec part{&byte, 1};
  const auto got = server_->Read({&part, 1});
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, 0u);
}

TEST_F(TlsStream, AnotherSecretIsRefused) {
  Make(SetupOf(true, 's'), SetupOf(false, 't'));
  EXPECT_EQ(Handshake().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TlsStream, WhatIsNoTlsIsRefused) {
  Make(SetupOf(true), SetupOf(false));
  const std::string junk(1000, 'x');
  ASSERT_EQ(send(to_server_.get(), junk.data(), junk.size(), MSG_NOSIGNAL),
            1000);
  EXPECT_EQ(server_->Handshake().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TlsStream, KeysChangeUnderWay) {
  TlsSetup client = SetupOf(true);
  client.rekey_bytes = 50'000;
  Make(client, SetupOf(false));
  ASSERT_THAT(Handshake(), IsOk());
  const std::string bytes = TextPattern(1'000'000);
  ExpectTransfer(bytes);
}

TEST_F(TlsStream, AnEndThatClosesIsUnavailableAndRaisesNoSignal) {
  Make(SetupOf(true), SetupOf(false));
  ASSERT_THAT(Handshake(), IsOk());
  to_client_ = Fd();
  char byte = 'x';
  const iovec part{&byte, 1};
  EXPECT_EQ(client_->Write({&part, 1}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(client_->Read({&part, 1}).status().code(),
            absl::StatusCode::kUnavailable);
}

class ChangedOnTheWay : public TlsStream {
 protected:
  void Pass(std::string& bytes) override {
    if (armed_) bytes.back() = static_cast<char>(bytes.back() ^ 1);
  }
  bool armed_ = false;
};

TEST_F(ChangedOnTheWay, IsSeen) {
  Make(SetupOf(true), SetupOf(false));
  ASSERT_THAT(Handshake(), IsOk());
  armed_ = true;
  EXPECT_EQ(Transfer(TextPattern(5000)).status().code(),
            absl::StatusCode::kDataLoss);
}

// One thread reads while another one writes, at both ends.
TEST(TlsStreams, CarryBothDirectionsAtOnce) {
  auto [one, other] = Sockets();
  const auto client = *TcpStream::Tls(std::move(one), SetupOf(true));
  const auto server = *TcpStream::Tls(std::move(other), SetupOf(false));
  for (int turn = 0; turn < 10; ++turn) {
    client->Handshake().IgnoreError();
    server->Handshake().IgnoreError();
  }
  ASSERT_THAT(client->Handshake(), IsOk());
  ASSERT_THAT(server->Handshake(), IsOk());
  const std::string bytes = TextPattern(8'000'000);
  const auto write = [&bytes](TcpStream& stream) {
    for (size_t sent = 0; sent < bytes.size();) {
      const iovec rest{const_cast<char*>(bytes.data()) + sent,
                       bytes.size() - sent};
      const auto put = stream.Write({&rest, 1});
      ASSERT_THAT(put, IsOk());
      sent += *put;
      if (*put == 0) std::this_thread::yield();
    }
  };
  const auto read = [&bytes](TcpStream& stream) {
    std::string came(bytes.size(), '\0');
    for (size_t got = 0; got < came.size();) {
      const iovec rest{came.data() + got, came.size() - got};
      const auto some = stream.Read({&rest, 1});
      ASSERT_THAT(some, IsOk());
      got += *some;
      if (*some == 0) std::this_thread::yield();
    }
    EXPECT_EQ(came, bytes);
  };
  std::vector<std::thread> threads;
  for (TcpStream* stream : {client.get(), server.get()}) {
    threads.emplace_back([&write, stream] { write(*stream); });
    threads.emplace_back([&read, stream] { read(*stream); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace baton::rpc
