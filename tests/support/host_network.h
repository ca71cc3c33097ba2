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

// Hosts on this machine: Linux network namespaces at a common switch, each with
// an address, a boot id and a TMPDIR of its own, so that programs on two of
// them take each other for what runs on another machine. Host 0 is this
// process's. Confined to one thread, but for Cut and Mend, which one other may
// call.
class HostNetwork {
 public:
  enum class Loss {
    kBothWays,  // all packets to and from the host
    kToHost,    // those to the host; its own arrive
  };

  // Moves the calling thread, and those that it and its own will start, into
  // the network, for good; nothing of this process may have used another one.
  // Unavailable without the rights of root, which a user namespace gives, and
  // where iproute2 or util-linux are missing.
  static absl::StatusOr<std::unique_ptr<HostNetwork>> Make(int others);

  static std::string AddressOf(int host);
  // What runs a program, of which `command` has the whole path, on another
  // host.
  std::vector<std::string> On(int host, std::vector<std::string> command) const;
  // Loses packets from now on, of which neither end is told. Connections live
  // on after Mend, unless somebody has given them up.
  absl::Status Cut(int host, Loss loss = Loss::kBothWays);
  absl::Status Mend(int host);

 private:
  HostNetwork() = default;
  absl::Status AddHost(int host);

  const TempFolder folder_;  // each host has another at its path
  // Each keeps the namespaces of a host.
  std::vector<std::unique_ptr<ChildProcess>> keepers_;
};

}  // namespace baton::testing
