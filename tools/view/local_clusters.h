// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/view/observer.h"

namespace baton::tools {

struct LocalCluster {
  std::string worker = {};  // the flag for it: --worker=NAME=ADDRESS
  std::vector<std::string> names = {};  // all workers, by rank
  std::unique_ptr<Observer> observer = nullptr;
};

// Finds the clusters that have a worker of this user on this machine; only
// those named `cluster`, unless that is empty. `options` must name neither a
// worker nor a rendezvous. Two clusters with one name that run at the same time
// are listed separately. Clusters whose worker does not answer are left out; if
// none answers, returns the first one's error. NotFound if there is none.
absl::StatusOr<std::vector<LocalCluster>> FindLocalClusters(
    const ObserverOptions& options, const std::string& cluster);

// Returns "cluster of trainer, worker1, worker2
// (--worker=trainer=127.0.0.1:2901)".
std::string NameOf(const LocalCluster& cluster);

}  // namespace baton::tools
