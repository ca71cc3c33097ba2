// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rpc/security.h"
#include "tests/support/child_process.h"

namespace baton::testing {

// An etcd cluster of three nodes: processes on this machine (Debian's
// etcd-server) that end with this object, with their data in a temporary
// folder. Their elections take 0.5 to 1 s. Confined to one thread.
class EtcdNodes {
 public:
  // With certificates, the nodes accept only clients with certificates of the
  // same authority.
  explicit EtcdNodes(const rpc::Security& security = {});
  ~EtcdNodes();

  static constexpr size_t kCount = 3;
  std::string address() const;  // etcd://...
  // Returns true once a node has heard from the others, within 30 s.
  bool AwaitServing() const;
  void Kill(size_t node);
  // Starts a node that was killed again, with its data.
  void StartAgain(size_t node);

 private:
  void Start(size_t node);

  const rpc::Security security_;
  std::filesystem::path folder_;
  std::vector<std::string> clients_, peers_;  // host:port, by node
  std::unique_ptr<ChildProcess> nodes_[kCount];
};

}  // namespace baton::testing
