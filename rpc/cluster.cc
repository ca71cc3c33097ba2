// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/cluster.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/grpc.h"

namespace baton::rpc {
namespace {

uint64_t NewIncarnation() {
  std::random_device device;
  uint64_t incarnation = 0;
  while (incarnation == 0) {
    incarnation = (uint64_t{device()} << 32) | device();
  }
  return incarnation;
}

// The static list with this worker found in it.
absl::StatusOr<std::vector<WorkerInfo>> PeersFromList(
    const ClusterOptions& options, WorkerInfo& self) {
  ASSIGN_OR_RETURN(std::vector<WorkerInfo> workers,
                   ParseWorkerList(options.peers));
  const auto own = std::find_if(
      workers.begin(), workers.end(),
      [&](const WorkerInfo& worker) { return worker.name == self.name; });
  if (own == workers.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list of workers has no '", self.name,
                     "', the name of this one: ", options.peers));
  }
  own->incarnation = self.incarnation;
  self = *own;
  return workers;
}

absl::StatusOr<std::vector<WorkerInfo>> PeersFromRendezvous(
    const ClusterOptions& options, WorkerInfo& self) {
  ASSIGN_OR_RETURN(std::vector<WorkerInfo> workers,
                   Join(options.rendezvous, {.cluster = options.cluster,
                                             .self = self,
                                             .wanted_rank = options.rank,
                                             .world_size = options.world_size,
                                             .timeout = options.join_timeout}));
  for (const WorkerInfo& worker : workers) {
    if (worker.name == self.name) self = worker;
  }
  return workers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> JoinCluster(ClusterOptions options,
                                                   Registry registry) {
  RETURN_IF_ERROR(CheckWorkerName(options.name));
  WorkerInfo self = {.name = options.name, .incarnation = NewIncarnation()};
  GrpcOptions transport_options = {
      .listen = options.listen,
      .advertise_host = options.advertise_host,
      .cluster = options.cluster,
      .registry_digest = absl::StrCat(absl::Hex(registry.Digest()))};
  std::vector<WorkerInfo> workers;
  if (!options.peers.empty()) {
    ASSIGN_OR_RETURN(workers, PeersFromList(options, self));
    transport_options.listen = self.address;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                   MakeGrpcTransport(transport_options));
  self.address = transport->address();
  if (options.peers.empty()) {
    ASSIGN_OR_RETURN(workers, PeersFromRendezvous(options, self));
  }
  SetLogName(self.name);
  options.agent.self = self;
  options.agent.peers = std::move(workers);
  return Agent::Start(std::move(options.agent), std::move(registry),
                      std::move(transport));
}

}  // namespace baton::rpc
