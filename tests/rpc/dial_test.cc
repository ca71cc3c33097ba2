// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Whom a worker dials, given what it was told of where its peers are.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rpc/grpc_worker.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;
using std::chrono::milliseconds;

// Alice talks in clear; bob lives at 127.0.0.1.
class GrpcDial : public ::testing::Test {
 protected:
  GrpcDial() {
    alice_->Start();
    bob_->Start();
    tcp_ = TcpOf(bob_->info.address);
  }
  absl::Status SendToBobAt(const std::string& address) {
    WorkerInfo bob = bob_->info;
    bob.address = address;
    alice_->transport->RemovePeer("bob");
    alice_->transport->AddPeer(bob);
    return alice_->SendTo("bob", {"hello", {}});
  }

  const GrpcOptions options_{.unix_socket = false,
                             .reconnect_timeout = std::chrono::seconds(10)};
  std::unique_ptr<TestWorker> alice_ = NewWorker("alice", 0, options_);
  std::unique_ptr<TestWorker> bob_ = NewWorker("bob", 1, options_);
  std::string tcp_;
};

TEST_F(GrpcDial, APeerBeyondThisMachineIsNotDialedInClear) {
  const std::vector<std::string> open = {
      "192.0.2.1:80", "[2001:db8::1]:80", "no-such-host.invalid:80",
      "unix:/nowhere;192.0.2.1:80", tcp_ + ";192.0.2.1:80"};
  for (const std::string& address : open) {
    EXPECT_THAT(SendToBobAt(address),
                Fails(StatusCode::kInvalidArgument, "beyond this machine"))
        << address;
  }
  EXPECT_THAT(SendToBobAt(tcp_), IsOk());
}

TEST_F(GrpcDial, WhatOnlyGrpcTakesForAnAddressIsNone) {
  const std::vector<std::string> odd = {"dns:" + tcp_,
                                        "dns:///" + tcp_,
                                        "ipv4:" + tcp_,
                                        "dns://127.0.0.1/bob",
                                        "127.0.0.1",
                                        "127.0.0.1:0",
                                        "a b:1",
                                        "evil/x:1",
                                        "unix-abstract:bob"};
  for (const std::string& address : odd) {
    EXPECT_THAT(SendToBobAt(address),
                Fails(StatusCode::kInvalidArgument, "worker bob"))
        << address;
  }
}

}  // namespace
}  // namespace baton::rpc
