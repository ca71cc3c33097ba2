// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "tools/view/cluster_tables.h"

namespace baton::tools {

struct ObserverOptions {
  std::string cluster = "baton";
  // Any one worker, as name=host:port (what a daemon prints), or:
  std::string worker = {};
  // The rendezvous, as host:port.
  std::string rendezvous = {};
  std::chrono::milliseconds timeout{5'000};  // of each question
};

// Looks at a running cluster without being of it: no rank, no place at the
// rendezvous, no exports. Confined to one thread.
class Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Observer>> Make(
      const ObserverOptions& options);
  ~Observer();

  // Who there is now, by rank. Fails only when who was named at the beginning
  // does not answer.
  absl::StatusOr<std::vector<rpc::WorkerInfo>> Workers();
  // What each says; those that do not answer say why.
  absl::StatusOr<std::vector<WorkerReport>> Ask();

  rpc::Agent& agent() { return *agent_; }

 private:
  Observer(ObserverOptions options, std::unique_ptr<rpc::Agent> agent)
      : options_(std::move(options)), agent_(std::move(agent)) {}

  const ObserverOptions options_;
  rpc::WorkerInfo entry_;  // with --worker
  const std::unique_ptr<rpc::Agent> agent_;
};

}  // namespace baton::tools
