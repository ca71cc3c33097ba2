// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/child_process.h"
#include "tests/support/test_files.h"

namespace baton::testing {

// Simulates several hosts on this machine: Linux network namespaces at a common
// bridge. Each has its own address, boot id and TMPDIR, so programs on two of
// them believe that they are on different machines. Host 0 is this process's.
// Confined to one thread, except Cut and Mend, which one other thread may call.
class HostNetwork {
 public:
  enum class Loss {
    kBothWays,  // all packets to and from the host
    kToHost,    // packets to the host; its own still arrive
  };

  // Moves the calling thread, and threads that it starts later, into the
  // network permanently; this process must not have used another network.
  // Returns Unavailable without root's rights, which a user namespace gives, or
  // if iproute2 or util-linux is missing.
  static absl::StatusOr<std::unique_ptr<HostNetwork>> Make(int others);

  static std::string AddressOf(int host);
  // Returns the command that runs `command`, which names the program by its
  // whole path, on another host.
  std::vector<std::string> On(int host, std::vector<std::string> command) const;
  // From now on packets are lost without notice to either end. Connections
  // survive until Mend, unless one end gives them up.
  absl::Status Cut(int host, Loss loss = Loss::kBothWays);
  absl::Status Mend(int host);

 private:
  HostNetwork() = default;
  absl::Status AddHost(int host);

  const TempFolder folder_;  // each host has its own folder at the same path
  // Each of these keeps the namespaces of a host.
  std::vector<std::unique_ptr<ChildProcess>> keepers_;
};

}  // namespace baton::testing
