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
  std::string worker = {};  // the flag that names it: --worker=NAME=ADDRESS
  std::vector<std::string> names = {};  // of all its workers, by rank
  std::unique_ptr<Observer> observer = nullptr;
};

// The clusters that have a worker of this user on this machine, of `cluster`'s
// name unless that is empty; `options` names neither worker nor rendezvous. Two
// that run at one time under one name are two. Those whose worker does not
// answer are left out; where there is no other, the error is the first one's.
// NotFound where there is none at all.
absl::StatusOr<std::vector<LocalCluster>> FindLocalClusters(
    const ObserverOptions& options, const std::string& cluster);

// "cluster of trainer, worker1, worker2 (--worker=trainer=127.0.0.1:2901)".
std::string NameOf(const LocalCluster& cluster);

}  // namespace baton::tools
