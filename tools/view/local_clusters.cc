// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/local_clusters.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "rpc/transports/private_socket.h"

namespace baton::tools {

absl::StatusOr<std::vector<LocalCluster>> FindLocalClusters(
    const ObserverOptions& options, const std::string& cluster) {
  std::vector<LocalCluster> found;
  std::set<std::string> known;  // addresses of the found clusters' workers
  absl::Status silent;          // why the first one does not answer
  for (const rpc::LocalWorker& worker : rpc::LocalWorkers()) {
    if (!cluster.empty() && worker.cluster != cluster) continue;
    if (known.count(worker.address) > 0) continue;
    ObserverOptions asked = options;
    asked.cluster = worker.cluster;
    asked.worker = absl::StrCat(worker.name, "=", worker.address);
    ASSIGN_OR_RETURN(auto observer, Observer::Make(asked));
    const auto members = observer->Workers();
    silent.Update(members.status());
    if (!members.ok()) continue;
    LocalCluster local{.worker = "--worker=" + asked.worker};
    for (const rpc::WorkerInfo& member : *members) {
      known.emplace(*absl::StrSplit(member.address, ';').begin());
      local.names.push_back(member.name);
    }
    local.observer = std::move(observer);
    found.push_back(std::move(local));
  }
  if (!found.empty()) return found;
  RETURN_IF_ERROR(silent);
  return absl::NotFoundError(absl::StrCat(
      "no worker of this user",
      cluster.empty() ? "" : absl::StrCat(" and of cluster ", cluster),
      " runs on this machine, by what is in ", rpc::PrivateSocket::Base(),
      " (TMPDIR); give --worker=NAME=HOST:PORT or --rendezvous=HOST:PORT"));
}

std::string NameOf(const LocalCluster& cluster) {
  return absl::StrCat("cluster of ", absl::StrJoin(cluster.names, ", "), " (",
                      cluster.worker, ")");
}

}  // namespace baton::tools
