// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/etcd_nodes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rpc/etcd/etcd.h"
#include "rpc/transports/address.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

// Returns an address at which nobody listens, with a port below those that the
// kernel gives to clients: one of these could be taken by a client first.
std::string FreeAddress() {
  std::random_device random;
  for (;;) {
    const std::string address =
        absl::StrCat("127.0.0.1:", 10'000 + random() % 20'000);
    if (rpc::CheckListen(address).ok()) return address;
  }
}

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

EtcdNodes::EtcdNodes(const rpc::Security& security) : security_(security) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "baton-etcd-XXXXXX").string();
  EXPECT_NE(::mkdtemp(folder.data()), nullptr) << folder;
  folder_ = folder;
  Write(folder_ / "node.pem", security.certificate);
  Write(folder_ / "node.key", security.key);
  Write(folder_ / "ca.pem", security.authority);
  for (size_t node = 0; node < kCount; ++node) {
    clients_.push_back(FreeAddress());
    peers_.push_back(FreeAddress());
  }
  for (size_t node = 0; node < kCount; ++node) Start(node);
  EXPECT_TRUE(AwaitServing()) << "is etcd-server installed (tools/setup.sh "
                                 "--ci)? Its log is in "
                              << folder_;
}

EtcdNodes::~EtcdNodes() {
  for (auto& node : nodes_) node.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string EtcdNodes::address() const {
  return absl::StrCat("etcd://", absl::StrJoin(clients_, ","));
}

bool EtcdNodes::AwaitServing() const {
  const auto etcd = rpc::internal::Etcd::Make(address(), security_);
  EXPECT_THAT(etcd, IsOk());
  return Within(std::chrono::seconds(30), [&] {
    return absl::IsNotFound(
        (*etcd)
            ->Get("none", std::chrono::system_clock::now() +
                              std::chrono::milliseconds(500))
            .status());
  });
}

void EtcdNodes::Kill(size_t node) {
  nodes_[node]->Kill(SIGKILL);
  nodes_[node]->Wait();
}

void EtcdNodes::StartAgain(size_t node) { Start(node); }

void EtcdNodes::Start(size_t node) {
  std::vector<std::string> all;
  for (size_t i = 0; i < kCount; ++i)
    all.push_back(absl::StrCat("n", i, "=http://", peers_[i]));
  const std::string client =
      absl::StrCat(security_.tls() ? "https://" : "http://", clients_[node]);
  const std::string peer = absl::StrCat("http://", peers_[node]);
  const std::string name = absl::StrCat("n", node);
  std::vector<std::string> command = {
      "/usr/bin/env",
      "etcd",
      "--name=" + name,
      "--data-dir=" + (folder_ / name).string(),
      "--listen-client-urls=" + client,
      "--advertise-client-urls=" + client,
      "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer,
      "--initial-cluster=" + absl::StrJoin(all, ","),
      "--initial-cluster-token=" + folder_.filename().string(),
      "--heartbeat-interval=50",
      "--election-timeout=500",
      "--logger=zap",
      "--log-outputs=" + (folder_ / (name + ".log")).string()};
  if (security_.tls()) {
    command.insert(command.end(),
                   {"--cert-file=" + (folder_ / "node.pem").string(),
                    "--key-file=" + (folder_ / "node.key").string(),
                    "--trusted-ca-file=" + (folder_ / "ca.pem").string(),
                    "--client-cert-auth"});
  }
  nodes_[node] = std::make_unique<ChildProcess>(command);
}

}  // namespace baton::testing
