// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Whom the channel of TCP dials, and what it costs while nobody answers.

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/channels/tcp_socket.h"
#include "rpc/security.h"
#include "rpc/transports/channel_kinds.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/tcp_ends.h"
#include "tests/support/process_usage.h"

namespace baton::rpc {
namespace {

using baton::testing::UsageOf;
using ::testing::HasSubstr;

std::string OfferAt(const std::string& host, uint16_t port,
                    const std::string& key) {
  wire::TcpOffer offer;
  offer.set_host(host);
  offer.set_port(port);
  offer.set_key(key);
  return offer.SerializeAsString();
}

// A port whose queue is full: the kernel drops what comes, as a firewall does.
class Blackhole {
 public:
  Blackhole() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    auto* address = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(bind(listening_.get(), address, size), 0);
    EXPECT_EQ(listen(listening_.get(), 0), 0);
    EXPECT_EQ(getsockname(listening_.get(), address, &size), 0);
    port_ = ntohs(at.sin_port);
    for (int i = 0; i < 3; ++i) {
      fill_.emplace_back(
          ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      (void)connect(fill_.back().get(), address, size);
    }
  }
  uint16_t port() const { return port_; }

 private:
  Fd listening_;
  std::vector<Fd> fill_;
  uint16_t port_ = 0;
};

class TcpDialTest : public TcpTest {
 protected:
  static TcpOptions Soon() {
    TcpOptions options = OnLoopback();
    options.opening = std::chrono::milliseconds(1500);
    return options;
  }
  TcpDialTest() : TcpTest(Soon()) {}
};

TEST_F(TcpDialTest, ThatNobodyAnswersTakesNoThreadAndHoldsUpNobody) {
  constexpr size_t kDials = 40;
  const Blackhole blackhole;
  const int threads = UsageOf(getpid())->threads;
  std::vector<std::shared_ptr<TestPort>> ports;
  std::vector<std::shared_ptr<Channel>> dials;
  for (size_t i = 0; i < kDials; ++i) {
    ports.push_back(std::make_shared<TestPort>());
    const std::string offer = *alice_.kind->Offer();
    dials.push_back(*alice_.kind->Open(
        {true, offer,
         OfferAt("127.0.0.1", blackhole.port(), std::string(kKeyBytes, 'k'))},
        ports.back()));
    dials.back()->Start();
  }
  // Alice and bob have two that read and write, each.
  Open();
  EXPECT_LE(UsageOf(getpid())->threads, threads + 6);
  EXPECT_EQ(Transfer(alice_, bob_, Bytes(50'000, 5)).numel(), 50'000);
  for (const auto& port : ports) EXPECT_EQ(port->settled(), "");
  // Whoever loses its connection meanwhile dials no more.
  const size_t descriptors = Descriptors();
  for (size_t i = 0; i < kDials / 2; ++i) dials[i]->OnLost();
  EXPECT_TRUE(
      Within([&] { return Descriptors() <= descriptors - kDials / 2; }));
  for (size_t i = kDials / 2; i < kDials; ++i)
    EXPECT_THAT(ports[i]->AwaitSettled(), HasSubstr("it does not answer"));
  EXPECT_TRUE(Within([&] { return Descriptors() <= descriptors - kDials; }));
}

TEST_F(TcpDialTest, OfAHostWithSeveralAddressesTriesAllOfThem) {
  Connect([](const std::string& offer) {
    wire::TcpOffer altered;
    EXPECT_TRUE(altered.ParseFromString(offer));
    altered.set_host("localhost");
    return altered.SerializeAsString();
  });
  EXPECT_EQ(alice_.port->AwaitSettled(), "open");
}

TEST_F(TcpDialTest, OfANameThatIsUnknownSaysSo) {
  Connect([](const std::string& offer) {
    wire::TcpOffer altered;
    EXPECT_TRUE(altered.ParseFromString(offer));
    altered.set_host("no-such-host.invalid");
    return altered.SerializeAsString();
  });
  EXPECT_THAT(alice_.port->AwaitSettled(),
              HasSubstr("cannot find no-such-host.invalid"));
}

// The port for tensors that a peer tells is dialed only where gRPC may be.
TEST(TcpExposure, APortBeyondThisMachineIsNotDialedInClear) {
  const auto told = [](const GrpcOptions& options, const std::string& host) {
    const auto kinds = MakeChannelKinds(options, "", nullptr);
    EXPECT_TRUE(kinds.ok()) << kinds.status();
    const auto& kind = kinds->back();
    const auto port = std::make_shared<TestPort>();
    const std::string ours = *kind->Offer();
    const auto channel = kind->Open(
        {true, ours, OfferAt(host, 1, std::string(kKeyBytes, 'k'))}, port);
    EXPECT_TRUE(channel.ok()) << channel.status();
    (*channel)->Start();
    std::string settled;
    if (host == "127.0.0.1") {
      settled = port->AwaitSettled();
    } else {
      baton::testing::Within(std::chrono::seconds(1), [&] {
        settled = port->settled();
        return !settled.empty();
      });
    }
    (*channel)->OnLost();
    return settled;
  };
  const GrpcOptions clear{.shared_memory = false};
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    EXPECT_THAT(told(clear, host), HasSubstr("beyond this machine")) << host;
  }
  EXPECT_THAT(told(clear, "127.0.0.1"), HasSubstr("cannot connect"));
  GrpcOptions insecure = clear;
  insecure.security.insecure = true;
  EXPECT_THAT(told(insecure, "192.0.2.1"),
              ::testing::Not(HasSubstr("beyond this machine")));
}

}  // namespace
}  // namespace baton::rpc
