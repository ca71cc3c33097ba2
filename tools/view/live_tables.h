// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rpc/view.h"
#include "tools/view/cluster_tables.h"

namespace baton::tools {

// Makes the tables of a cluster that is observed repeatedly. Thread-compatible.
class LiveTables {
 public:
  // Returns the tables of TablesOf and, for "status", each worker's rates since
  // the last call, including training steps per second. A worker that is
  // missing now has the state "gone" until one of its name appears.
  std::vector<rpc::View> Next(const std::string& command,
                              std::vector<WorkerReport> reports);

 private:
  rpc::View Rates(const std::vector<WorkerReport>& reports) const;

  std::map<std::string, WorkerReport> last_;  // by name
};

}  // namespace baton::tools
