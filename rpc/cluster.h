// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "rpc/registry.h"
#include "rpc/rendezvous.h"
#include "rpc/security.h"
#include "rpc/transport.h"
#include "rpc/worker.h"

namespace baton::rpc {

// Parses "alice=host:port,bob=host:port". Ranks follow the order; incarnations
// are 0 (unknown). InvalidArgument names the entry that is malformed or a
// duplicate.
absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text);

// How a process joins a cluster as a worker; baton-worker and every trainer do
// this first. Either `rendezvous` or `peers` says how to find the other
// workers.
struct ClusterOptions {
  std::string cluster = "baton";  // workers of other clusters are refused
  std::string name;               // of this worker
  int rank = -1;                  // the wanted rank; -1: any free one
  // "host:port" of a rendezvous, which waits until `world_size` workers have
  // come. A `world_size` of kOneMore (rpc/rendezvous.h) joins a cluster that
  // has met.
  std::string rendezvous;
  int world_size = 0;
  // The name of the worker that hosts this rendezvous for as long as it lives,
  // and which the others recognise by its own certificate; empty: a server of
  // its own hosts it. That worker listens at `rendezvous`, or at `listen` if
  // `rendezvous` is empty, and calls `on_rendezvous` with the address;
  // JoinCluster returns the error that `on_rendezvous` returns.
  std::string rendezvous_host = {};
  std::function<absl::Status(const std::string& address)> on_rendezvous = {};
  // Instead of `rendezvous`: all workers, including this one, as
  // "alice=host:port,bob=host:port". The order gives the ranks; a different
  // `rank` or `world_size` is InvalidArgument.
  std::string peers;
  // Where this worker listens. Ignored with `peers`, where it listens at the
  // address of its own entry.
  std::string listen = "127.0.0.1:0";
  std::string advertise_host;
  std::chrono::milliseconds join_timeout{60'000};
  // As in GrpcOptions.
  Security security;
  uint16_t tensor_port = 0;
  size_t max_message_bytes = size_t{16} << 30;
  size_t max_undelivered_bytes = size_t{256} << 20;
  // As in Compute. Its other fields are taken from the process when it joins.
  Device device = Device::Cpu();
  DType dtype = DType::kF32;
  // JoinCluster fills in `self` and `peers`.
  AgentOptions agent;
};

// Listens, meets the other workers and starts the agent, within join_timeout.
// Invalid options and registries are refused before any other process hears of
// this worker. Errors name the cause: the address that cannot be listened on,
// the rendezvous that cannot be reached, or the workers that did not come.
absl::StatusOr<std::unique_ptr<Agent>> JoinCluster(ClusterOptions options,
                                                   Registry registry);

namespace internal {

// Meets the other workers through `dial` as `join` says and starts the agent.
// `join.self` has an incarnation and the address of `transport`. If `leaves`,
// the agent tells the rendezvous when it shuts down.
absl::StatusOr<std::unique_ptr<Agent>> JoinBy(
    const RendezvousDialer& dial, const std::string& rendezvous,
    JoinOptions join, AgentOptions options, Registry registry,
    std::unique_ptr<Transport> transport, bool leaves);

}  // namespace internal

}  // namespace baton::rpc
