// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/etcd/etcd.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "tests/rpc/certificates.h"
#include "tests/support/etcd_nodes.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::internal::Etcd;
using rpc::internal::NodesOfEtcd;
using std::chrono::system_clock;

std::unique_ptr<Etcd> ClientOf(const std::string& address,
                               const rpc::Security& security = {}) {
  auto made = Etcd::Make(address, security);
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

TEST(EtcdAddress, NamesEachNode) {
  const auto nodes = NodesOfEtcd("etcd://10.0.0.1:2379,[::1]:2380,c:2379");
  ASSERT_THAT(nodes, IsOk());
  EXPECT_EQ(*nodes, (std::vector<std::string>{"10.0.0.1:2379", "[::1]:2380",
                                              "c:2379"}));
}

TEST(EtcdAddress, SaysWhatIsWrong) {
  for (const char* wrong : {"etcd://", "etcd://a", "etcd://a:1,", "etcd://a:0",
                            "etcd://a:1/path", "etcd://http://a:1"}) {
    EXPECT_THAT(NodesOfEtcd(wrong),
                Fails(StatusCode::kInvalidArgument,
                      absl::StrCat("\"", wrong, "\" is no etcd://host:port")));
  }
}

TEST(EtcdAddress, IsNotTalkedToInClearBeyondThisMachine) {
  EXPECT_TRUE(rpc::IsLocal("etcd://127.0.0.1:1,[::1]:2"));
  EXPECT_FALSE(rpc::IsLocal("etcd://127.0.0.1:1,192.0.2.1:2"));
  EXPECT_THAT(Etcd::Make("etcd://127.0.0.1:1,192.0.2.1:2", {}),
              Fails(StatusCode::kInvalidArgument, "beyond this machine"));
  EXPECT_THAT(Etcd::Make("etcd://192.0.2.1:2", {.insecure = true}), IsOk());
}

class EtcdClient : public ::testing::Test {
 protected:
  static auto Soon() { return system_clock::now() + 5s; }

  EtcdNodes nodes_;
  const std::unique_ptr<Etcd> etcd_ = ClientOf(nodes_.address());
};

TEST_F(EtcdClient, AKeyLivesAsLongAsItsLease) {
  ASSERT_THAT(etcd_->Grant(7, 60s, Soon()), IsOk());
  ASSERT_THAT(etcd_->Grant(8, 60s, Soon()), IsOk());
  EXPECT_THAT(etcd_->Get("key", Soon()), Fails(StatusCode::kNotFound, "key"));
  EXPECT_THAT(etcd_->Create("key", "mine", 7, Soon()), IsOk());
  EXPECT_EQ(*etcd_->Get("key", Soon()), "mine");
  // The same request comes twice where a node does not answer soon.
  EXPECT_THAT(etcd_->Create("key", "mine", 7, Soon()), IsOk());
  EXPECT_THAT(etcd_->Create("key", "other", 8, Soon()),
              Fails(StatusCode::kAlreadyExists, "key"));
  EXPECT_EQ(*etcd_->Get("key", Soon()), "mine");
  EXPECT_EQ(*etcd_->KeepAlive(7, Soon()), 60s);
  EXPECT_THAT(etcd_->Revoke(7, Soon()), IsOk());
  EXPECT_THAT(etcd_->Get("key", Soon()), Fails(StatusCode::kNotFound, "key"));
  EXPECT_THAT(etcd_->KeepAlive(7, Soon()),
              Fails(StatusCode::kNotFound, "has ended"));
  EXPECT_THAT(etcd_->Create("key", "other", 8, Soon()), IsOk());
}

// One of the three led the others.
TEST_F(EtcdClient, DoesWithoutAnyOneNode) {
  ASSERT_THAT(etcd_->Grant(7, 60s, Soon()), IsOk());
  ASSERT_THAT(etcd_->Create("key", "value", 7, Soon()), IsOk());
  for (size_t node = 0; node < EtcdNodes::kCount; ++node) {
    nodes_.Kill(node);
    EXPECT_TRUE(nodes_.AwaitServing());
    EXPECT_EQ(*etcd_->Get("key", Soon()), "value");
    EXPECT_THAT(etcd_->KeepAlive(7, Soon()), IsOk());
    nodes_.StartAgain(node);
    EXPECT_TRUE(nodes_.AwaitServing());
  }
}

TEST_F(EtcdClient, DoesNotBelieveOneNodeAlone) {
  nodes_.Kill(0);
  nodes_.Kill(1);
  const auto until = system_clock::now() + 20s;
  absl::Status status;
  while ((status = etcd_->Get("key", system_clock::now() + 2s).status(),
          absl::IsNotFound(status)) &&
         system_clock::now() < until) {
  }
  EXPECT_THAT(status, Fails(StatusCode::kUnavailable,
                            absl::StrCat("the etcd at ", nodes_.address(),
                                         " does not serve")));
}

TEST(EtcdOverTls, IsForHoldersOfCertificatesOfItsAuthority) {
  const rpc::TestAuthority authority, other;
  const EtcdNodes nodes(authority.For("etcd"));
  const auto soon = [] { return system_clock::now() + 5s; };
  EXPECT_THAT(ClientOf(nodes.address(), authority.For("rendezvous"))
                  ->Get("key", soon()),
              Fails(StatusCode::kNotFound, "key"));
  EXPECT_THAT(
      ClientOf(nodes.address(), other.For("rendezvous"))->Get("key", soon()),
      Fails(StatusCode::kUnauthenticated, "not of the authority"));
  EXPECT_THAT(ClientOf(nodes.address())->Get("key", soon()),
              Fails(StatusCode::kUnavailable, "maybe it wants TLS"));
}

TEST(EtcdAddress, IsToldApartFromOtherServers) {
  const auto rendezvous = rpc::RendezvousServer::Make("127.0.0.1:0");
  ASSERT_THAT(rendezvous, IsOk());
  EXPECT_THAT(ClientOf("etcd://" + (*rendezvous)->address())
                  ->Get("key", system_clock::now() + 5s),
              Fails(StatusCode::kUnavailable, "a server that is none"));
}

}  // namespace
}  // namespace baton::testing
