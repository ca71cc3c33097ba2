// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rpc/view.h"
#include "tools/view/cluster_tables.h"

namespace baton::tools {

// The tables of a cluster that is looked at again and again. Thread-compatible.
class LiveTables {
 public:
  // Those of TablesOf and, for "status", what each worker has done a second
  // since the last call, training steps among it. A worker that was there
  // before and is missing now has the state "gone", until one of its name
  // comes.
  std::vector<rpc::View> Next(const std::string& command,
                              std::vector<WorkerReport> reports);

 private:
  rpc::View Rates(const std::vector<WorkerReport>& reports) const;

  std::map<std::string, WorkerReport> last_;  // by name
};

}  // namespace baton::tools
