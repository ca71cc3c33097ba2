// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/host_network.h"

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::testing {
namespace {

constexpr char kSwitch[] = R"(
  ip link set lo up &&
  ip link add switch type bridge &&
  ip address add "$1/24" dev switch &&
  ip link set switch up)";

// Makes a host's namespaces and prints "ready", waits for the cable, and keeps
// them until its input ends.
constexpr char kKeep[] = R"(
  mount -t tmpfs tmpfs "$1" &&
  cat /proc/sys/kernel/random/uuid > "$1/boot_id" &&
  mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id &&
  ip link set lo up &&
  echo ready && read -r go &&
  ip address add "$2/24" dev cable &&
  ip link set cable up &&
  echo up && exec cat)";

constexpr char kCable[] = R"(
  ip link add "$1" type veth peer name cable netns "$2" &&
  ip link set "$1" master switch up)";

// A bridge port in the listening state forwards no packets in either direction.
// One that neither floods nor learns sends none to the host.
constexpr char kCutBothWays[] = "ip link set $1 type bridge_slave state 1";
constexpr char kCutToHost[] = R"(
  ip link set "$1" type bridge_slave \
    learning off flood off mcast_flood off bcast_flood off &&
  ip link set "$1" type bridge_slave fdb_flush)";
constexpr char kMend[] = R"(
  ip link set "$1" type bridge_slave state 3 \
    learning on flood on mcast_flood on bcast_flood on)";

std::string Port(int host) { return absl::StrCat("host", host); }

absl::Status Shell(const std::string& what, const char* script,
                   const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"/bin/sh", "-c", script, "sh"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (ChildProcess(command).Wait() == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(what, " failed; it needs iproute2 and util-linux"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostNetwork>> HostNetwork::Make(int others) {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "no network of its own for this process (", std::strerror(errno),
        "): run it as root, or by unshare --user --map-root-user"));
  }
  std::unique_ptr<HostNetwork> network(new HostNetwork());
  // Programs on other hosts do not see the sockets in this folder.
  setenv("TMPDIR", network->folder_.path().c_str(), 1);
  RETURN_IF_ERROR(Shell("the switch of the hosts", kSwitch, {AddressOf(0)}));
  for (int host = 1; host <= others; ++host)
    RETURN_IF_ERROR(network->AddHost(host));
  return network;
}

std::string HostNetwork::AddressOf(int host) {
  return absl::StrCat("192.0.2.", host + 1);  // for documents (RFC 5737)
}

std::vector<std::string> HostNetwork::On(
    int host, std::vector<std::string> command) const {
  const pid_t keeper = keepers_.at(static_cast<size_t>(host - 1))->pid();
  command.insert(command.begin(),
                 {"/usr/bin/nsenter", absl::StrCat("--target=", keeper),
                  "--net", "--mount"});
  return command;
}

absl::Status HostNetwork::Cut(int host, Loss loss) {
  return Shell("cutting a host off",
               loss == Loss::kBothWays ? kCutBothWays : kCutToHost,
               {Port(host)});
}

absl::Status HostNetwork::Mend(int host) {
  return Shell("mending a host's cable", kMend, {Port(host)});
}

absl::Status HostNetwork::AddHost(int host) {
  auto keeper = std::make_unique<ChildProcess>(std::vector<std::string>{
      "/usr/bin/unshare", "--net", "--mount", "/bin/sh", "-c", kKeep, "sh",
      folder_.path(), AddressOf(host)});
  const auto says = [&keeper](const std::string& line) {
    return keeper->ReadLine(std::chrono::steady_clock::now() +
                            std::chrono::seconds(10)) == line;
  };
  if (!says("ready")) return absl::UnavailableError("no host can be made");
  RETURN_IF_ERROR(Shell("a host's cable", kCable,
                        {Port(host), absl::StrCat(keeper->pid())}));
  keeper->WriteLine("go");
  if (!says("up")) return absl::UnavailableError("a host has no cable");
  keepers_.push_back(std::move(keeper));
  return absl::OkStatus();
}

}  // namespace baton::testing
