// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cluster_flags.h"

#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "rpc/worker.h"
#include "tools/address_flag.h"
#include "tools/command_line.h"
#include "tools/compute_flags.h"
#include "tools/launched.h"
#include "tools/security_flags.h"

ABSL_FLAG(std::string, cluster, "",
          "name of the cluster; default BATON_CLUSTER, else baton");
ABSL_FLAG(std::string, name, "", "name of this worker; default BATON_NAME");
ABSL_FLAG(int, rank, -1,
          "rank of this worker; default BATON_RANK, else any free one");
ABSL_FLAG(std::string, rendezvous, "",
          "host:port of the rendezvous, or etcd://host:port,... where etcd "
          "knows which one serves; default BATON_RENDEZVOUS");
ABSL_FLAG(int, world_size, 0,
          "workers that the rendezvous waits for, trainer included; default "
          "BATON_WORLD_SIZE");
ABSL_FLAG(bool, extra, false,
          "instead of --world_size: join, at any time, a cluster that has met "
          "at the rendezvous, as one more");
ABSL_FLAG(std::string, peers, "",
          "instead of a rendezvous, every worker by rank: name=host:port,...; "
          "default BATON_PEERS");
ABSL_FLAG(std::string, listen, "",
          "host:port or unix:path to listen on; port 0 for any free one; with "
          "--peers its own entry there; default BATON_LISTEN, else "
          "127.0.0.1:0");
ABSL_FLAG(std::string, advertise_host, "",
          "host that peers are told; default the one listened on");
ABSL_FLAG(uint32_t, tensor_port, 0,
          "port to listen on for tensors of workers that do not share memory "
          "with this one, where they go by TCP; 0 for any free one");
ABSL_FLAG(absl::Duration, join_timeout, absl::Seconds(60),
          "how long to wait for the other workers");
ABSL_FLAG(absl::Duration, rpc_timeout, absl::Seconds(60),
          "deadline of calls that name none");
ABSL_FLAG(
    absl::Duration, lease, absl::Seconds(2),
    "how long a worker may be silent or away before it is given up; 100ms "
    "or more");
ABSL_FLAG(int, rpc_threads, 4, "handlers that run at a time");
ABSL_FLAG(uint64_t, max_message_bytes, uint64_t{16} << 30,
          "larger messages are neither sent nor taken");
ABSL_FLAG(uint64_t, max_undelivered_bytes, uint64_t{256} << 20,
          "reading from a worker pauses while so much of what it sent has not "
          "been looked at");
ABSL_FLAG(uint64_t, max_calls_per_peer, 50'000,
          "calls of one other worker that may wait here, for their turn or for "
          "the answer to leave; more are refused");
ABSL_FLAG(uint64_t, max_call_bytes_per_peer, uint64_t{16} << 30,
          "bytes of arguments and answers of one other worker's calls that may "
          "wait here; more are refused");
ABSL_FLAG(uint64_t, max_calls, 100'000,
          "calls that may wait here, of all workers, and as many made by this "
          "one; more are refused");

namespace baton::tools {
namespace {

constexpr char kTrainer[] = "trainer";
constexpr char kDefaultListen[] = "127.0.0.1:0";

std::string TextOr(const std::string& flag, const char* variable,
                   const std::string& otherwise) {
  if (!flag.empty()) return flag;
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

absl::StatusOr<int> NumberOr(int flag, int unset, const char* variable) {
  const char* value = std::getenv(variable);
  if (flag != unset || value == nullptr || *value == '\0') return flag;
  int number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, "=", value, " is not a number"));
  }
  return number;
}

// A limit of 0 would stop everything.
absl::StatusOr<size_t> Limit(const absl::Flag<uint64_t>& flag,
                             const char* name) {
  const uint64_t value = absl::GetFlag(flag);
  if (value == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " must be more than 0"));
  }
  return value;
}

absl::StatusOr<uint16_t> TensorPort() {
  const uint32_t port = absl::GetFlag(FLAGS_tensor_port);
  if (port > 0xffff) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor_port=", port, " is no port: 65535 is the last"));
  }
  return static_cast<uint16_t>(port);
}

absl::Status SetLimits(rpc::ClusterOptions& options) {
  ASSIGN_OR_RETURN(options.max_message_bytes,
                   Limit(FLAGS_max_message_bytes, "max_message_bytes"));
  ASSIGN_OR_RETURN(options.max_undelivered_bytes,
                   Limit(FLAGS_max_undelivered_bytes, "max_undelivered_bytes"));
  ASSIGN_OR_RETURN(options.agent.max_calls_per_peer,
                   Limit(FLAGS_max_calls_per_peer, "max_calls_per_peer"));
  ASSIGN_OR_RETURN(
      options.agent.max_call_bytes_per_peer,
      Limit(FLAGS_max_call_bytes_per_peer, "max_call_bytes_per_peer"));
  ASSIGN_OR_RETURN(options.agent.max_incoming_calls,
                   Limit(FLAGS_max_calls, "max_calls"));
  options.agent.max_outgoing_calls = options.agent.max_incoming_calls;
  return absl::OkStatus();
}

absl::Status CheckMeeting(const rpc::ClusterOptions& options) {
  if (options.rendezvous.empty() == options.peers.empty()) {
    return absl::InvalidArgumentError(
        options.peers.empty()
            ? "how to meet the other workers? Give --rendezvous=host:port and "
              "--world_size, or --peers, or start this program by baton-run"
            : "--rendezvous and --peers exclude each other");
  }
  if (!options.rendezvous.empty() && options.world_size < 1 &&
      options.world_size != rpc::kOneMore) {
    return absl::InvalidArgumentError(
        "--rendezvous needs --world_size, the number of workers to wait for, "
        "trainer included; or --extra, to join those that have met");
  }
  return absl::OkStatus();
}

// Finds wrong addresses before any process waits for another.
absl::Status CheckAddresses(const rpc::ClusterOptions& options) {
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_listen, "BATON_LISTEN"));
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_rendezvous, "BATON_RENDEZVOUS"));
  if (!options.peers.empty()) {
    RETURN_IF_ERROR(Annotate(
        rpc::ParseWorkerList(options.peers).status(),
        absl::GetFlag(FLAGS_peers).empty() ? "BATON_PEERS" : "--peers"));
  }
  if (options.advertise_host.empty()) return absl::OkStatus();
  const std::string told = rpc::ToString({options.advertise_host, 0});
  return Annotate(rpc::ParseHostPort(told).status(), "--advertise_host");
}

// If mpirun, srun or the like has started this process, and no flag says who it
// is: rank 0 is the trainer and hosts the rendezvous, the others are worker1,
// worker2, ... Returns the launcher's values; nullopt if no launcher is used.
absl::StatusOr<std::optional<Launched>> FillInFromLauncher(
    const std::string& default_name, rpc::ClusterOptions& options) {
  const bool named = options.name != default_name ||
                     (!default_name.empty() && default_name != kTrainer);
  if (named || options.world_size != 0 || !options.peers.empty())
    return std::nullopt;
  ASSIGN_OR_RETURN(const auto launched, LaunchedByOthers());
  if (!launched.has_value()) return std::nullopt;
  if (options.rendezvous.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this is rank ", launched->rank, " of ", launched->size, " (",
        launched->by, "): give --rendezvous=host:port, the same to all, where ",
        "rank 0 shall listen"));
  }
  options.world_size = launched->size;
  options.rank = launched->rank;
  options.name =
      launched->rank == 0 ? kTrainer : absl::StrCat("worker", launched->rank);
  const bool hosted = !rpc::internal::IsEtcd(options.rendezvous);
  if (hosted) options.rendezvous_host = kTrainer;
  // Only processes on this machine can reach the default address.
  if ((launched->rank > 0 || !hosted) && options.listen == kDefaultListen) {
    ASSIGN_OR_RETURN(options.listen, ListenAddressBeside(options.rendezvous));
  }
  return launched;
}

}  // namespace

absl::StatusOr<rpc::ClusterOptions> ClusterOptionsFromFlags(
    const std::string& default_name) {
  rpc::ClusterOptions options;
  options.cluster =
      TextOr(absl::GetFlag(FLAGS_cluster), "BATON_CLUSTER", "baton");
  options.name = TextOr(absl::GetFlag(FLAGS_name), "BATON_NAME", default_name);
  options.rendezvous =
      TextOr(absl::GetFlag(FLAGS_rendezvous), "BATON_RENDEZVOUS", "");
  options.peers = TextOr(absl::GetFlag(FLAGS_peers), "BATON_PEERS", "");
  options.listen =
      TextOr(absl::GetFlag(FLAGS_listen), "BATON_LISTEN", kDefaultListen);
  options.advertise_host = absl::GetFlag(FLAGS_advertise_host);
  RETURN_IF_ERROR(CheckAddresses(options));
  ASSIGN_OR_RETURN(options.tensor_port, TensorPort());
  ASSIGN_OR_RETURN(options.rank,
                   NumberOr(absl::GetFlag(FLAGS_rank), -1, "BATON_RANK"));
  ASSIGN_OR_RETURN(options.world_size, NumberOr(absl::GetFlag(FLAGS_world_size),
                                                0, "BATON_WORLD_SIZE"));
  if (absl::GetFlag(FLAGS_extra)) {
    if (absl::GetFlag(FLAGS_world_size) != 0)
      return absl::InvalidArgumentError(
          "--extra and --world_size exclude each other");
    options.world_size = rpc::kOneMore;
  }
  ASSIGN_OR_RETURN(const std::optional<Launched> launched,
                   FillInFromLauncher(default_name, options));
  ASSIGN_OR_RETURN(options.join_timeout, TimeOf(FLAGS_join_timeout));
  ASSIGN_OR_RETURN(options.agent.default_timeout, TimeOf(FLAGS_rpc_timeout));
  ASSIGN_OR_RETURN(options.agent.lease, TimeOf(FLAGS_lease, rpc::kLeastLease));
  RETURN_IF_ERROR(rpc::CheckLease(options.agent.lease));
  options.agent.worker_threads = absl::GetFlag(FLAGS_rpc_threads);
  RETURN_IF_ERROR(SetLimits(options));
  if (options.name.empty())
    return absl::InvalidArgumentError("no name: give this worker a --name");
  RETURN_IF_ERROR(rpc::CheckWorkerName(options.name));
  RETURN_IF_ERROR(CheckMeeting(options));
  ASSIGN_OR_RETURN(options.security, SecurityFromFlags(options.name));
  ASSIGN_OR_RETURN(const rpc::Compute compute, ComputeFromFlags(launched));
  options.device = compute.device;
  options.dtype = compute.dtype;
  return options;
}

}  // namespace baton::tools
