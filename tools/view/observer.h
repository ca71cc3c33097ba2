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
#include "rpc/security.h"
#include "tools/view/cluster_tables.h"

namespace baton::tools {

struct ObserverOptions {
  std::string cluster = "baton";
  // Any worker, as name=host:port (baton-worker prints it), or:
  std::string worker = {};
  // The rendezvous, as host:port.
  std::string rendezvous = {};
  std::chrono::milliseconds timeout{5'000};  // of each request
  rpc::Security security = {};               // as "batonctl"
};

// Inspects a running cluster without joining it: has no rank, no place at the
// rendezvous and no exports. Confined to one thread.
class Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Observer>> Make(
      const ObserverOptions& options);
  ~Observer();

  // Called while answers are awaited, and lets some time pass. If it returns
  // false, the wait ends, and the request returns Cancelled.
  using Patience = std::function<bool(std::chrono::milliseconds)>;
  // Returns the present workers, by rank. Fails only if the worker or
  // rendezvous of the options does not answer. Without `patience`, waits until
  // it has answered or the timeout has passed.
  absl::StatusOr<std::vector<rpc::WorkerInfo>> Workers(
      const Patience& patience = nullptr);
  // Returns a report of each worker; the report of one that does not answer
  // says why.
  absl::StatusOr<std::vector<WorkerReport>> Ask(
      const Patience& patience = nullptr);

  rpc::Agent& agent() { return *agent_; }

 private:
  Observer(ObserverOptions options, std::unique_ptr<rpc::Agent> agent)
      : options_(std::move(options)), agent_(std::move(agent)) {}

  absl::StatusOr<std::vector<rpc::WorkerInfo>> AskRendezvous(
      const Patience& patience) const;

  const ObserverOptions options_;
  rpc::WorkerInfo entry_;  // of the options' worker
  const std::unique_ptr<rpc::Agent> agent_;
};

}  // namespace baton::tools
