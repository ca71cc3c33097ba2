// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the rendezvous at which the workers of several machines meet:
//   baton-rendezvous --listen=10.0.0.1:2900 --tls_dir=certs
// Or on several machines, of which one serves at a time:
//   baton-rendezvous --listen=10.0.0.1:2900 --tls_dir=certs
//     --etcd=etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379

#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/etcd/rendezvous_candidate.h"
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

ABSL_FLAG(std::string, etcd, "",
          "etcd://host:port,host:port,...: serve only while none of the others "
          "does that are started with the same --etcd; workers find the one "
          "that serves by --rendezvous=etcd://host:port,...");

ABSL_FLAG(absl::Duration, etcd_ttl, absl::Seconds(3),
          "with --etcd, for how long after its last word to etcd it serves, in "
          "whole seconds; after that another one may");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: baton-rendezvous --listen=HOST:PORT [--etcd=etcd://HOST:PORT,...]\n"
    "Serves the meeting of workers that are started with\n"
    "--rendezvous=HOST:PORT, of any number of clusters, until SIGINT or\n"
    "SIGTERM. Prints its address when it serves. Workers that have met go on\n"
    "without it; nobody can join them until it is started again at the same\n"
    "address, where they come back by themselves. With --etcd it may be\n"
    "started on several machines: one serves, and another one, where all come\n"
    "back by themselves, when that one is lost.";

absl::StatusOr<int> ServeOrStandBy(const rpc::Security& security,
                                   StopSignal& stop) {
  ASSIGN_OR_RETURN(const std::chrono::milliseconds ttl,
                   TimeOf(FLAGS_etcd_ttl, std::chrono::seconds(1)));
  stop.Keep();  // before the candidate's thread prints
  const auto say = [](const std::string& address, bool serves) {
    Print(absl::StrCat(serves ? "rendezvous at " : "standing by at ", address,
                       "\n"))
        .IgnoreError();  // the exit code tells of an error
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::RendezvousCandidate> candidate,
                   rpc::RendezvousCandidate::Make(
                       {.etcd = absl::GetFlag(FLAGS_etcd),
                        .listen = absl::GetFlag(FLAGS_listen),
                        .security = security,
                        .max_members = absl::GetFlag(FLAGS_max_members),
                        .ttl = std::chrono::ceil<std::chrono::seconds>(ttl)},
                       say));
  stop.Wait();
  return 0;
}

absl::StatusOr<int> Main() {
  SetLogName(rpc::kRendezvousName);
  RETURN_IF_ERROR(AtLeast(0, FLAGS_max_members));
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_listen));
  StopSignal stop;
  ASSIGN_OR_RETURN(const rpc::Security security,
                   SecurityFromFlags(rpc::kRendezvousName));
  if (!absl::GetFlag(FLAGS_etcd).empty()) return ServeOrStandBy(security, stop);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<rpc::RendezvousServer> server,
      rpc::RendezvousServer::Make(absl::GetFlag(FLAGS_listen), security,
                                  absl::GetFlag(FLAGS_max_members)));
  stop.Keep();  // a reader of the next line may send a signal at once
  Print(absl::StrCat("rendezvous at ", server->address(), "\n"))
      .IgnoreError();  // the exit code tells of an error
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
