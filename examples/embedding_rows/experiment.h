// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/embedding_rows/row_client.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/agent.h"

namespace baton::examples {

struct RowTableTask {
  std::vector<std::string> servers, clients;  // workers
  dist::RowTableOptions table;
  int64_t rows = 0;
  bool backups = false;
};

// What all clients together did. Plain data.
struct RowFigures {
  int64_t rows = 0;
  double seconds = 0;  // of the one that took longest
  std::vector<float> latencies_us;
};

// A table at servers, and clients that use it. Must not outlive the agent.
// Confined to one thread.
class RowExperiment {
 public:
  static absl::StatusOr<std::unique_ptr<RowExperiment>> Make(
      rpc::Agent& agent, const RowTableTask& task);

  // Has all rows be there; the time it took.
  absl::StatusOr<double> Fill();
  // At so many of the clients at a time.
  absl::StatusOr<RowFigures> Run(const RowOrder& order, int64_t clients);
  // Of the servers' processes together, beyond what they had at first.
  absl::StatusOr<int64_t> BytesOfTable();

 private:
  RowExperiment(rpc::Agent& agent, RowTableTask task);
  absl::StatusOr<int64_t> BytesOfServers();

  rpc::Agent& agent_;
  const RowTableTask task_;
  int64_t bytes_before_ = 0;
  std::unique_ptr<dist::ParameterServers> servers_;
  std::vector<RRef<RowClient>> clients_;
};

}  // namespace baton::examples
