// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "autograd/distributed/context.h"
#include "tests/models/distributed/process_stages.h"
#include "tests/models/distributed/recovery/recovered_stages.h"
#include "tests/support/local_cluster.h"

namespace baton::dist {

// Returns the losses of the same stages in one process, which nothing disturbs,
// at workers of these names.
inline std::vector<double> UndisturbedLosses(
    size_t steps, const std::vector<std::string>& workers) {
  testing::ClusterOptions options;
  options.names = {"trainer"};
  options.names.insert(options.names.end(), workers.begin(), workers.end());
  options.fill = RegisterProcessStages;
  options.on_start = Attach;
  testing::LocalCluster cluster(options);
  RecoveredStages stages(cluster["trainer"], workers);
  const auto pipeline = stages.Pipeline();
  std::vector<double> losses;
  while (losses.size() < steps) RecoveredStages::AddLoss(*pipeline, losses);
  return losses;
}

}  // namespace baton::dist
