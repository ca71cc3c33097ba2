// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/node_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "tools/address_flag.h"
#include "tools/command_line.h"
#include "tools/launched.h"

ABSL_FLAG(int, nodes, 1,
          "machines of the run: baton-run is started on each, with the same "
          "--workers and --rendezvous");
ABSL_FLAG(int, node, 0,
          "which of --nodes this is; node 0 has the trainer, which the others "
          "need not name, and the rendezvous, unless --rendezvous names etcd");
ABSL_FLAG(
    std::string, rendezvous, "",
    "with --nodes, host:port of node 0, where all meet, or "
    "etcd://host:port,... where etcd knows which baton-rendezvous serves");
ABSL_FLAG(std::string, host, "",
          "with --nodes, the name or address by which the others reach this "
          "machine; default its host name");
ABSL_FLAG(absl::Duration, join_timeout, absl::Seconds(60),
          "how long to wait for the other nodes");

namespace baton::tools {
namespace {

// A greater number is taken for a mistake.
constexpr int kMostNodes = 1024;

absl::Status Check(const NodeFlags& flags, bool has_host) {
  if (flags.nodes < 1 || flags.nodes > kMostNodes)
    return absl::InvalidArgumentError(
        absl::StrCat("--nodes must be 1 to ", kMostNodes));
  if (flags.node < 0 || flags.node >= flags.nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--node=", flags.node, " of --nodes=", flags.nodes,
                     ": the first is 0, the last ", flags.nodes - 1));
  }
  if (flags.nodes > 1 && flags.rendezvous.empty()) {
    return absl::InvalidArgumentError(
        "--nodes needs --rendezvous=HOST:PORT, the same on all machines: an "
        "address of node 0 and a free port there; or "
        "--rendezvous=etcd://HOST:PORT,...");
  }
  if (flags.nodes == 1 && (has_host || !flags.rendezvous.empty())) {
    return absl::InvalidArgumentError(
        "--rendezvous and --host are for --nodes; on one machine the workers "
        "meet at --rendezvous_listen");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeFlags> NodesFromFlags() {
  NodeFlags flags;
  flags.node = absl::GetFlag(FLAGS_node);
  flags.nodes = absl::GetFlag(FLAGS_nodes);
  flags.rendezvous = absl::GetFlag(FLAGS_rendezvous);
  const std::string host = absl::GetFlag(FLAGS_host);
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_rendezvous));
  RETURN_IF_ERROR(Check(flags, !host.empty()));
  ASSIGN_OR_RETURN(flags.join_timeout, TimeOf(FLAGS_join_timeout));
  if (!host.empty()) {
    flags.listen = absl::StrCat(host, ":0");
  } else if (flags.nodes > 1) {
    ASSIGN_OR_RETURN(flags.listen, ListenAddressBeside(flags.rendezvous));
  }
  return flags;
}

}  // namespace baton::tools
