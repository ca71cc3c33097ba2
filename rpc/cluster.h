// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "rpc/registry.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_client.h"
#include "rpc/security.h"
#include "rpc/transport.h"

namespace baton::rpc {

// How a process becomes a worker of a cluster: what baton-worker and every
// trainer do first. Either `rendezvous` or `peers` says who else there is.
struct ClusterOptions {
  std::string cluster = "baton";  // workers of other clusters are refused
  std::string name;               // of this worker
  int rank = -1;                  // wanted rank; -1: any free one
  // "host:port" of the built-in rendezvous service, which waits until
  // `world_size` workers have come; or kOneMore (rpc/rendezvous.h).
  std::string rendezvous;
  int world_size = 0;
  // Name of the worker among them that hosts this rendezvous, for as long as it
  // lives, and is known to the others by its own certificate; empty: a server
  // of its own does. That worker listens at `rendezvous` or, where that is
  // empty, at `listen`, and tells the address by `on_rendezvous`: what this
  // gives, an error among it, JoinCluster gives.
  std::string rendezvous_host = {};
  std::function<absl::Status(const std::string& address)> on_rendezvous = {};
  // Or all workers, this one among them: "alice=host:port,bob=host:port". Their
  // order gives the ranks; another `rank` or `world_size` is InvalidArgument.
  std::string peers;
  // Where this worker listens; with `peers` its own entry's address.
  std::string listen = "127.0.0.1:0";
  std::string advertise_host;
  std::chrono::milliseconds join_timeout{60'000};
  // As in GrpcOptions.
  Security security;
  uint16_t tensor_port = 0;
  size_t max_message_bytes = size_t{16} << 30;
  size_t max_undelivered_bytes = size_t{256} << 20;
  // As in Compute, whose other parts are those of the process at the time.
  Device device = Device::Cpu();
  DType dtype = DType::kF32;
  // self and peers are filled in by JoinCluster.
  AgentOptions agent;
};

// Listens, meets the others, starts the agent. Returns within join_timeout.
// Options and registries that are wrong are refused before anybody hears of
// this worker; errors name what is missing: the address that cannot be listened
// on, the rendezvous that cannot be reached, the workers that did not come.
absl::StatusOr<std::unique_ptr<Agent>> JoinCluster(ClusterOptions options,
                                                   Registry registry);

namespace internal {

// Meets the others by `dial`, as `join` says, and starts the agent of its self,
// which has an incarnation and the address of `transport`. `leaves`: tells the
// rendezvous when it ends.
absl::StatusOr<std::unique_ptr<Agent>> JoinBy(
    const RendezvousDialer& dial, const std::string& rendezvous,
    JoinOptions join, AgentOptions options, Registry registry,
    std::unique_ptr<Transport> transport, bool leaves);

}  // namespace internal

}  // namespace baton::rpc
