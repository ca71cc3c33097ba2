// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/embedding_rows/row_client.h"
#include "examples/support/participants.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/parameter_server.h"
#include "rpc/agent.h"

namespace baton::examples {

struct RowTableTask {
  std::vector<std::string> servers;  // workers; all others are clients
  dist::RowTableOptions table;
  int64_t rows = 0;
  bool backups = false;
};

// What all clients together did. Plain data.
struct RowFigures {
  int64_t clients = 0;
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

  // Has all rows be there; the time it took. What a client does that is lost
  // meanwhile the others do.
  absl::StatusOr<double> Fill();
  // At so many of the clients at a time (0: at all that are there), those on
  // workers that have joined among them; without what those do that are lost
  // meanwhile. InvalidArgument where fewer are there and none was lost.
  absl::StatusOr<RowFigures> Run(const RowOrder& order, int64_t clients);
  // The same by a client in the process of each server.
  absl::StatusOr<RowFigures> RunAtServers(const RowOrder& order);
  // Of the servers' processes together, those that are there, beyond what they
  // had at first.
  int64_t BytesOfTable();
  int64_t lost() const { return clients_.lost(); }  // clients, so far

 private:
  struct RowRange {
    int64_t begin = 0;
    int64_t end = 0;
  };
  using Clients = std::vector<Participants<RowClient>::Present>;

  RowExperiment(rpc::Agent& agent, RowTableTask task);
  Future<RRef<RowClient>> MakeClient(const std::string& worker);
  // Without what those do that `all` loses meanwhile.
  static absl::StatusOr<RowFigures> RunBy(Participants<RowClient>& all,
                                          const Clients& clients,
                                          const RowOrder& order);
  // Gives what is not there yet.
  absl::StatusOr<std::vector<RowRange>> FillSome(
      const std::vector<RowRange>& ranges);
  int64_t BytesOfServers();

  rpc::Agent& agent_;
  const RowTableTask task_;
  int64_t bytes_before_ = 0;
  std::unique_ptr<dist::ParameterServers> servers_;
  int64_t ranks_ = 0;  // given so far
  Participants<RowClient> clients_, at_servers_;
};

}  // namespace baton::examples
