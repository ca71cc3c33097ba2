// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/embedding_rows/row_check.h"
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

// What all clients did together. Plain data.
struct RowFigures {
  int64_t clients = 0;
  int64_t rows = 0;
  double seconds = 0;  // of the slowest client
  std::vector<float> latencies_us;
};

// A table at parameter servers and the clients that use it. Must not outlive
// the agent. Confined to one thread.
class RowExperiment {
 public:
  static absl::StatusOr<std::unique_ptr<RowExperiment>> Make(
      rpc::Agent& agent, const RowTableTask& task);

  // Fills all rows and returns the seconds it took. If a client is lost, the
  // others fill its rows.
  absl::StatusOr<double> Fill();
  // Runs the order at `clients` clients at a time (0: at all); workers that
  // have joined count. Leaves out clients that are lost meanwhile. Returns
  // InvalidArgument if there are fewer clients and none was lost.
  absl::StatusOr<RowFigures> Run(const RowOrder& order, int64_t clients);
  // The same with one client in each server's process.
  absl::StatusOr<RowFigures> RunAtServers(const RowOrder& order);
  // From now on counts the updates of clients that are not lost (RowCheck).
  absl::Status CountUpdates();
  // Returns how many there are, all of them in the rows; or DataLoss.
  absl::StatusOr<int64_t> CompareRows() const {
    return check_->Compare(/*others=*/lost() + at_servers_.lost() > 0);
  }
  // Returns how many bytes the processes of the present servers have gained
  // since the beginning.
  int64_t BytesOfTable();
  RRef<dist::ServerDirectory> directory() const {
    return servers_->directory();
  }
  int64_t lost() const { return clients_.lost(); }  // number of clients so far

 private:
  struct RowRange {
    int64_t begin = 0;
    int64_t end = 0;
  };
  using Clients = std::vector<Participants<RowClient>::Present>;

  RowExperiment(rpc::Agent& agent, RowTableTask task);
  Future<RRef<RowClient>> MakeClient(const std::string& worker);
  // Leaves out the clients that `all` loses meanwhile.
  absl::StatusOr<RowFigures> RunBy(Participants<RowClient>& all,
                                   const Clients& clients,
                                   const RowOrder& order);
  // Returns the ranges that are still to be filled.
  absl::StatusOr<std::vector<RowRange>> FillSome(
      const std::vector<RowRange>& ranges);
  int64_t BytesOfServers();

  rpc::Agent& agent_;
  const RowTableTask task_;
  int64_t bytes_before_ = 0;
  std::unique_ptr<dist::ParameterServers> servers_;
  int64_t ranks_ = 0;  // number of ranks given so far
  Participants<RowClient> clients_, at_servers_;
  std::unique_ptr<RowCheck> check_;  // null until CountUpdates
};

}  // namespace baton::examples
