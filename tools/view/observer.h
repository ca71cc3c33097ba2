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
  // Any one worker, as name=host:port (what a daemon prints), or:
  std::string worker = {};
  // The rendezvous, as host:port.
  std::string rendezvous = {};
  std::chrono::milliseconds timeout{5'000};  // of each question
  rpc::Security security = {};               // for the name "batonctl"
};

// Looks at a running cluster without being of it: no rank, no place at the
// rendezvous, no exports. Confined to one thread.
class Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Observer>> Make(
      const ObserverOptions& options);
  ~Observer();

  // Lets some time pass while answers are awaited. False: nobody
  // waits for them any more, and the question ends with Cancelled.
  using Patience = std::function<bool(std::chrono::milliseconds)>;
  // Who there is now, by rank. Fails only when who was named at the beginning
  // does not answer. Null: until all have answered, or their time is over.
  absl::StatusOr<std::vector<rpc::WorkerInfo>> Workers(
      const Patience& patience = nullptr);
  // What each says; those that do not answer say why.
  absl::StatusOr<std::vector<WorkerReport>> Ask(
      const Patience& patience = nullptr);

  rpc::Agent& agent() { return *agent_; }

 private:
  Observer(ObserverOptions options, std::unique_ptr<rpc::Agent> agent)
      : options_(std::move(options)), agent_(std::move(agent)) {}

  absl::StatusOr<std::vector<rpc::WorkerInfo>> AskRendezvous(
      const Patience& patience) const;

  const ObserverOptions options_;
  rpc::WorkerInfo entry_;  // with --worker
  const std::unique_ptr<rpc::Agent> agent_;
};

}  // namespace baton::tools
