// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cluster_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/time/time.h"
#include "rpc/rendezvous.h"

ABSL_DECLARE_FLAG(absl::Duration, lease);
ABSL_DECLARE_FLAG(std::string, rendezvous);
ABSL_DECLARE_FLAG(bool, extra);
ABSL_DECLARE_FLAG(int, world_size);
ABSL_DECLARE_FLAG(uint32_t, tensor_port);
ABSL_DECLARE_FLAG(std::string, peers);
ABSL_DECLARE_FLAG(std::string, listen);
ABSL_DECLARE_FLAG(std::string, advertise_host);

namespace baton::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ClusterFlags, APortForTensorsIsOne) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_peers, "worker1=127.0.0.1:4001");
  for (const uint32_t port : {0u, 4002u, 65535u}) {
    absl::SetFlag(&FLAGS_tensor_port, port);
    const auto options = ClusterOptionsFromFlags("worker1");
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->tensor_port, port);
  }
  absl::SetFlag(&FLAGS_tensor_port, 65536);
  EXPECT_EQ(ClusterOptionsFromFlags("worker1").status().message(),
            "--tensor_port=65536 is no port: 65535 is the last");
}

TEST(ClusterFlags, ALeaseIsLongEnoughToBeKept) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_peers, "worker1=127.0.0.1:4001");
  absl::SetFlag(&FLAGS_lease, absl::Milliseconds(100));
  const auto options = ClusterOptionsFromFlags("worker1");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->agent.lease, std::chrono::milliseconds(100));
  for (const auto lease : {absl::ZeroDuration(), absl::Microseconds(500),
                           absl::Milliseconds(99), absl::InfiniteDuration()}) {
    absl::SetFlag(&FLAGS_lease, lease);
    const absl::Status status = ClusterOptionsFromFlags("worker1").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << lease;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--lease")) << lease;
  }
}

TEST(ClusterFlags, AWrongAddressIsNamedWithItsFlagOrVariable) {
  const auto said = [] {
    return std::string(ClusterOptionsFromFlags("worker1").status().message());
  };
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1");
  absl::SetFlag(&FLAGS_world_size, 2);
  EXPECT_EQ(said(),
            "--rendezvous: \"127.0.0.1\" is no host:port: the port is missing");
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1:2900");
  absl::SetFlag(&FLAGS_listen, "foo");
  EXPECT_THAT(said(), StartsWith("--listen: \"foo\" is no host:port"));
  absl::SetFlag(&FLAGS_listen, "");
  ::setenv("BATON_LISTEN", "foo", 1);
  EXPECT_THAT(said(), StartsWith("BATON_LISTEN: \"foo\" is no host:port"));
  ::unsetenv("BATON_LISTEN");
  absl::SetFlag(&FLAGS_advertise_host, "a b");
  EXPECT_THAT(said(), StartsWith("--advertise_host: "));
  absl::SetFlag(&FLAGS_advertise_host, "");
  absl::SetFlag(&FLAGS_rendezvous, "");
  absl::SetFlag(&FLAGS_peers, "foo");
  EXPECT_THAT(said(), StartsWith("--peers: \"foo\""));
}

TEST(ClusterFlags, OneMoreWaitsForNoNumberOfWorkers) {
  const absl::FlagSaver saver;
  absl::SetFlag(&FLAGS_rendezvous, "127.0.0.1:4001");
  absl::SetFlag(&FLAGS_extra, true);
  const auto options = ClusterOptionsFromFlags("worker1");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->world_size, rpc::kOneMore);
  absl::SetFlag(&FLAGS_world_size, 3);
  EXPECT_EQ(ClusterOptionsFromFlags("worker1").status().message(),
            "--extra and --world_size exclude each other");
}

}  // namespace
}  // namespace baton::tools
