// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/counter.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::JoinOptions;
using rpc::Rank;
using rpc::RendezvousServer;
using rpc::Security;
using rpc::TestAuthority;

class RendezvousSecurity : public ::testing::Test {
 protected:
  static constexpr auto kLong = 30s;

  // One worker's try to join a cluster of its own.
  static absl::Status JoinAlone(const Security& server, const Security& worker,
                                std::chrono::milliseconds timeout = kLong) {
    const auto rendezvous = RendezvousServer::Make("127.0.0.1:0", server);
    EXPECT_THAT(rendezvous, IsOk());
    return rpc::Join((*rendezvous)->address(), Alice(worker, timeout)).status();
  }
  // Who cannot know that nobody will answer tries for as long as it may, and
  // says then what it saw of it; a busy machine may need longer to see
  // anything.
  static absl::Status JoinInVain(const Security& server,
                                 const Security& worker) {
    for (std::chrono::milliseconds timeout = 1000ms;; timeout *= 4) {
      absl::Status status = JoinAlone(server, worker, timeout);
      if (!absl::StrContains(status.message(), "nobody answers there") ||
          timeout > kLong / 4) {
        return status;
      }
    }
  }
  static JoinOptions Alice(const Security& security,
                           std::chrono::milliseconds timeout = kLong) {
    return {.self = {"alice", Rank{0}, 7, "127.0.0.1:1"},
            .world_size = 1,
            .timeout = timeout,
            .access = {.security = security}};
  }
  Security Server() const { return authority_.For(rpc::kRendezvousName); }

  const TestAuthority authority_;
  const TestAuthority other_;
  const Security token_{.token = std::string(64, '3')};
};

TEST_F(RendezvousSecurity, OverTlsWithATokenWorkersMeet) {
  Security server = Server();
  Security worker = authority_.For("alice");
  server.token = worker.token = token_.token;
  EXPECT_THAT(JoinAlone(server, worker), IsOk());
  EXPECT_THAT(JoinAlone(token_, token_), IsOk());
}

TEST_F(RendezvousSecurity, AnotherTokenIsNamed) {
  EXPECT_THAT(
      JoinAlone(token_, {}),
      Fails(StatusCode::kUnauthenticated,
            ": the caller has no cluster token, and one is needed; give "
            "all workers of the cluster the same "
            "--cluster_token_file"));
  EXPECT_THAT(JoinAlone(token_, {.token = std::string(64, '4')}),
              Fails(StatusCode::kUnauthenticated, "another cluster token"));
  EXPECT_THAT(JoinAlone({}, token_),
              Fails(StatusCode::kUnauthenticated, "the called has none"));
}

TEST_F(RendezvousSecurity, CertificatesThatDoNotFitAreNamed) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(JoinAlone(other_.For("rendezvous"), authority_.For("alice")),
              Fails(StatusCode::kUnauthenticated,
                    ": its certificate has expired or is not of the authority "
                    "in --tls_ca"));
  EXPECT_THAT(JoinAlone(authority_.For("rendezvous", rpc::Expired()),
                        authority_.For("alice")),
              Fails(StatusCode::kUnauthenticated, "has expired"));
  EXPECT_THAT(JoinAlone(authority_.For("bob"), authority_.For("alice")),
              Fails(StatusCode::kUnauthenticated,
                    "its certificate is not for rendezvous"));
  // None of the three waited for what will not come.
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong / 2);
  EXPECT_THAT(JoinAlone(Server(), authority_.For("mallory")),
              Fails(StatusCode::kFailedPrecondition,
                    "worker alice came with a certificate for mallory"));
  Security untrusted = other_.For("alice");
  untrusted.authority = Server().authority;
  EXPECT_THAT(JoinInVain(Server(), untrusted),
              Fails(StatusCode::kUnavailable,
                    "maybe it does not trust this side's certificate"));
}

TEST_F(RendezvousSecurity, ClearTextAndTlsDoNotFit) {
  EXPECT_THAT(JoinInVain(Server(), {}),
              Fails(StatusCode::kUnavailable, "maybe it wants TLS"));
  EXPECT_THAT(JoinAlone({}, authority_.For("alice")),
              Fails(StatusCode::kUnauthenticated, "it talks in clear"));
}

TEST_F(RendezvousSecurity, NobodySpeaksForAnother) {
  const auto rendezvous = RendezvousServer::Make("127.0.0.1:0", Server());
  ASSERT_THAT(rendezvous, IsOk());
  const std::string address = (*rendezvous)->address();
  const JoinOptions alice = Alice(authority_.For("alice"));
  ASSERT_THAT(rpc::Join(address, alice), IsOk());
  EXPECT_THAT(rpc::Leave(address, alice.cluster, alice.self, kLong,
                         {.security = authority_.For("mallory")}),
              Fails(StatusCode::kFailedPrecondition, "for mallory"));
  EXPECT_THAT(
      rpc::Leave(address, alice.cluster, alice.self, kLong, alice.access),
      IsOk());
}

TEST_F(RendezvousSecurity, BeyondThisMachineItTakesTlsOrAWord) {
  EXPECT_THAT(RendezvousServer::Make("0.0.0.0:0"),
              Fails(StatusCode::kInvalidArgument,
                    "the rendezvous would listen on 0.0.0.0:0"));
  EXPECT_THAT(RendezvousServer::Make("0.0.0.0:0", {.insecure = true}), IsOk());
  EXPECT_THAT(RendezvousServer::Make("0.0.0.0:0", Server()), IsOk());
  EXPECT_THAT(rpc::Join("192.0.2.1:2900", Alice({})),
              Fails(StatusCode::kInvalidArgument,
                    "would talk to the rendezvous at 192.0.2.1:2900"));
}

// The whole of it: agents that meet by a list, where one of them hosts the
// rendezvous, and call each other.
TEST_F(RendezvousSecurity, AgentsMeetByAListOverTls) {
  const auto free = [] {
    return (*RendezvousServer::Make("127.0.0.1:0"))->address();
  };
  const std::string peers = absl::StrCat("alice=", free(), ",bob=", free());
  const auto join = [&](const std::string& name) {
    rpc::ClusterOptions options;
    options.name = name;
    options.peers = peers;
    options.join_timeout = kLong;
    options.security = authority_.For(name);
    options.security.token = token_.token;
    rpc::Registry registry;
    FillCounter(registry);
    return rpc::JoinCluster(std::move(options), std::move(registry));
  };
  auto bob = std::async(std::launch::async, join, "bob");
  const auto alice = join("alice");
  const auto other = bob.get();
  ASSERT_THAT(alice, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(*(*alice)->Async<&Sum>("bob", 1, 2).Await(), 3);
  EXPECT_EQ(*(*other)->Async<&Sum>("alice", 3, 4).Await(), 7);
}

}  // namespace
}  // namespace baton::testing
