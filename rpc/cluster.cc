// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/cluster.h"

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/log.h"
#include "core/precision.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/introspection.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "rpc/transports/grpc.h"

namespace baton::rpc {
namespace {

constexpr std::chrono::milliseconds kLeaveTimeout{500};

uint64_t NewIncarnation() {
  std::random_device device;
  uint64_t incarnation = 0;
  while (incarnation == 0) {
    incarnation = (uint64_t{device()} << 32) | device();
  }
  return incarnation;
}

// Where to meet: the named rendezvous, or, with a list of workers, one that the
// first of them hosts at its own address. So all workers learn each other's
// incarnations with a list, too.
struct Meeting {
  std::string address;
  JoinOptions join;
  bool hosted_here = false;
};

// Checks that the options do not contradict the list of workers.
absl::Status CheckPlace(const ClusterOptions& options, int place, int workers) {
  if (options.rank != -1 && options.rank != place) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", options.name, " wants rank ", options.rank,
        " (--rank), but the list of workers (--peers), whose order gives the ",
        "ranks, gives it ", place, "; leave --rank out"));
  }
  if (options.world_size == kOneMore) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", options.name, " cannot join as one more ",
                     "(--extra) by a list of workers (--peers); give ",
                     "--rendezvous instead of the list"));
  }
  if (options.world_size != 0 && options.world_size != workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", options.name, " waits for ", options.world_size,
                     " workers (--world_size), but the list (--peers) has ",
                     workers, "; leave --world_size out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Meeting> MeetingOf(const ClusterOptions& options) {
  Meeting meeting{.address = options.rendezvous,
                  .join = {.cluster = options.cluster,
                           .wanted_rank = options.rank,
                           .world_size = options.world_size,
                           .timeout = options.join_timeout,
                           .lease = options.agent.lease,
                           .listens = true,
                           .access = {.security = options.security}}};
  if (options.peers.empty()) {
    if (options.rendezvous_host.empty()) return meeting;
    meeting.join.access.name = options.rendezvous_host;
    meeting.hosted_here = options.rendezvous_host == options.name;
    return meeting;
  }
  if (!options.rendezvous_host.empty()) {
    return absl::InvalidArgumentError(
        "the first of a list of workers (--peers) hosts their rendezvous");
  }
  ASSIGN_OR_RETURN(std::vector<WorkerInfo> workers,
                   ParseWorkerList(options.peers));
  meeting.address = workers.front().address;
  meeting.join.access.name = workers.front().name;
  meeting.join.wanted_rank = -1;
  meeting.join.world_size = static_cast<int>(workers.size());
  for (const WorkerInfo& worker : workers) {
    meeting.join.expected.push_back(worker.name);
    if (worker.name != options.name) continue;
    meeting.hosted_here = worker.rank == Rank{0};
    meeting.join.wanted_rank = static_cast<int>(worker.rank);
    meeting.join.self.address = worker.address;
  }
  if (meeting.join.wanted_rank < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list of workers has no '", options.name,
                     "', the name of this one: ", options.peers));
  }
  RETURN_IF_ERROR(
      CheckPlace(options, meeting.join.wanted_rank, meeting.join.world_size));
  return meeting;
}

// Warns of an address at which workers on other machines cannot reach this one.
void WarnOfAnAddressOfThisMachineAlone(const ClusterOptions& options) {
  if (!options.peers.empty() || IsLocal(options.rendezvous) ||
      !IsLocal(options.listen) || !options.advertise_host.empty()) {
    return;
  }
  if (!internal::IsEtcd(options.rendezvous)) {
    const auto meeting = ParseHostPort(options.rendezvous);
    if (!meeting.ok()) return;
    const bool here = CheckListen(ToString({meeting->host, 0})).ok();
    if (here) return;
  }
  LogWarning(
      "worker ", options.name, " listens on ", options.listen,
      ", where no other machine reaches it, but meets the others at ",
      options.rendezvous,
      "; give --listen=HOST:0, or to baton-run --host=HOST, with an address of "
      "this machine");
}

std::string ListenOf(const ClusterOptions& options, const Meeting& meeting) {
  if (!options.peers.empty()) return meeting.join.self.address;
  return meeting.hosted_here && !options.rendezvous.empty() ? options.rendezvous
                                                            : options.listen;
}

}  // namespace

absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text) {
  std::vector<WorkerInfo> workers;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" in the list of workers is no name=host:port"));
    }
    WorkerInfo worker{entry.substr(0, equals),
                      Rank{static_cast<int32_t>(workers.size())}, 0,
                      entry.substr(equals + 1)};
    RETURN_IF_ERROR(CheckWorkerName(worker.name));
    if (!absl::StartsWith(worker.address, "unix:")) {
      ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(worker.address));
      if (parsed.port == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("worker ", worker.name,
                         " needs a port other than 0 in the list of workers"));
      }
    }
    for (const WorkerInfo& other : workers) {
      if (other.name != worker.name && other.address != worker.address) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" repeats the name or the address of worker ",
          other.name, " in the list of workers"));
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

absl::StatusOr<std::unique_ptr<Agent>> JoinCluster(ClusterOptions options,
                                                   Registry registry) {
  RETURN_IF_ERROR(CheckWorkerName(options.name));
  RETURN_IF_ERROR(internal::CheckAgent(options.agent, registry));
  ASSIGN_OR_RETURN(Meeting meeting, MeetingOf(options));
  WarnOfAnAddressOfThisMachineAlone(options);
  GrpcOptions transport_options = {
      .listen = ListenOf(options, meeting),
      .advertise_host = options.advertise_host,
      .cluster = options.cluster,
      .registry_digest = absl::StrCat(absl::Hex(registry.Digest())),
      .exports = registry.Exports(),
      .observer_digest = ObserverDigest(),
      .lease = options.agent.lease,
      .tensor_port = options.tensor_port,
      .device = options.device,
      .max_message_bytes = options.max_message_bytes,
      .max_undelivered_bytes = options.max_undelivered_bytes,
      .inline_delivery = true,  // an agent's handler never blocks
      .security = options.security};
  if (meeting.hosted_here) {
    transport_options.rendezvous = RendezvousService::Make(options.security);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                   MakeGrpcTransport(transport_options));
  if (meeting.hosted_here && options.peers.empty()) {
    meeting.address = transport->address();
    if (options.on_rendezvous)
      RETURN_IF_ERROR(options.on_rendezvous(meeting.address));
  }
  WorkerInfo& self = meeting.join.self;
  self = {.name = options.name,
          .incarnation = NewIncarnation(),
          .address = transport->address(),
          .compute = {.device = options.device,
                      .dtype = options.dtype,
                      .tf32 = Tf32Allowed(),
                      .deterministic = Deterministic()}};
  SetLogName(self.name);
  // A worker that hosts the rendezvous does not leave it: the rendezvous ends
  // with the worker.
  return internal::JoinBy(
      internal::DialerOf(meeting.address, meeting.join.access), meeting.address,
      meeting.join, std::move(options.agent), std::move(registry),
      std::move(transport), !meeting.hosted_here);
}

absl::StatusOr<std::unique_ptr<Agent>> internal::JoinBy(
    const RendezvousDialer& dial, const std::string& rendezvous,
    JoinOptions join, AgentOptions options, Registry registry,
    std::unique_ptr<Transport> transport, bool leaves) {
  ASSIGN_OR_RETURN(Membership members, JoinBy(dial, rendezvous, join));
  for (const WorkerInfo& worker : members.workers) {
    if (worker.name == join.self.name) join.self = worker;
  }
  auto lease = std::make_shared<RendezvousLease>(dial, join, members);
  options.on_stop = [lease, leaves] {
    lease->Stop();
    if (!leaves) return;
    const absl::Status left = lease->Leave(kLeaveTimeout);
    if (!left.ok()) LogDebug("not struck off: ", left.ToString());
  };
  options.self = join.self;
  options.peers = std::move(members.workers);
  ASSIGN_OR_RETURN(std::unique_ptr<Agent> agent,
                   Agent::Start(std::move(options), std::move(registry),
                                std::move(transport)));
  lease->Start([agent = agent.get()](const MemberEvent& event) {
    if (event.kind == MemberEvent::Kind::kJoined) {
      agent->AddPeer(event.worker);
    } else {
      agent->StrikeOff(event);
    }
  });
  return agent;
}

}  // namespace baton::rpc
