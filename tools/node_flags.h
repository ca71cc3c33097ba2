// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"

// The flags by which baton-run says which machine of several this is:
//   --nodes --node --rendezvous --host --join_timeout
namespace baton::tools {

struct NodeFlags {
  int node = 0;
  int nodes = 1;
  // Where all nodes meet, and the address at which this node's processes
  // listen; empty if there is only one node.
  std::string rendezvous;
  std::string listen;
  std::chrono::milliseconds join_timeout{0};  // to wait for other nodes
};

// Reads the parsed flags. InvalidArgument names the flag that is wrong.
absl::StatusOr<NodeFlags> NodesFromFlags();

}  // namespace baton::tools
