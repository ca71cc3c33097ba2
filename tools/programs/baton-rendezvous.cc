// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Where workers of several machines meet:
//   baton-rendezvous --listen=10.0.0.1:2900 --tls_dir=certs

#include <cstdio>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous.h"
#include "tools/address_flag.h"
#include "tools/command_line.h"
#include "tools/daemon.h"
#include "tools/security_flags.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:2900",
          "host:port where the workers meet; port 0 for any free one");

ABSL_FLAG(int, max_members, 0,
          "the most workers that a cluster may have at a time, trainers "
          "counted: one more is refused, until one has gone; 0: any number");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: baton-rendezvous --listen=HOST:PORT\n"
    "Serves the meeting of workers that are started with\n"
    "--rendezvous=HOST:PORT, of any number of clusters, until SIGINT or\n"
    "SIGTERM. Prints its address when it serves. Workers that have met go on\n"
    "without it; nobody can join them until it is started again at the same\n"
    "address, where they come back by themselves.";

absl::StatusOr<int> Main() {
  SetLogName(rpc::kRendezvousName);
  RETURN_IF_ERROR(AtLeast(0, FLAGS_max_members));
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_listen));
  StopSignal stop;
  ASSIGN_OR_RETURN(const rpc::Security security,
                   SecurityFromFlags(rpc::kRendezvousName));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<rpc::RendezvousServer> server,
      rpc::RendezvousServer::Make(absl::GetFlag(FLAGS_listen), security,
                                  absl::GetFlag(FLAGS_max_members)));
  stop.Keep();  // who reads the next line may send it at once
  std::printf("rendezvous at %s\n", server->address().c_str());
  std::fflush(stdout);
  stop.Wait();
  return 0;
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  ParseFlagsAloneOrExit(argc, argv, kUsage);
  const absl::StatusOr<int> code = Main();
  return code.ok() ? *code : ExitCode(code.status());
}
