// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {
namespace {

constexpr int kMaxWorldSize = 65536;
constexpr size_t kMaxAddress = 4096;

// How a limit is set.
constexpr char kLimit[] =
    "(baton-run --max_workers, baton-rendezvous --max_members)";

std::vector<std::string> Names(const std::vector<JoinOptions>& workers) {
  std::vector<std::string> names;
  for (const JoinOptions& worker : workers) names.push_back(worker.self.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::Status CheckJoin(const JoinOptions& options) {
  RETURN_IF_ERROR(CheckWorkerName(options.self.name));
  if (absl::Status status = CheckWorkerName(options.cluster); !status.ok()) {
    return Annotate(status, "the cluster's name");
  }
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", options.self.name, ": ", what));
  };
  const bool one_more = options.world_size == kOneMore;
  if (one_more && options.wanted_rank != -1) {
    return invalid(
        "who joins as one more (--extra) gets its rank, and "
        "wants none (--rank)");
  }
  if (!one_more &&
      (options.world_size < 1 || options.world_size > kMaxWorldSize)) {
    return invalid(absl::StrCat("a cluster of ", options.world_size,
                                " workers; 1 to ", kMaxWorldSize,
                                " are possible"));
  }
  if (!one_more &&
      (options.wanted_rank < -1 || options.wanted_rank >= options.world_size)) {
    return invalid(absl::StrCat("rank ", options.wanted_rank,
                                " in a cluster of ", options.world_size));
  }
  if (options.lease.count() != 0) {
    RETURN_IF_ERROR(Annotate(CheckLease(options.lease),
                             absl::StrCat("worker ", options.self.name)));
  }
  if (options.self.incarnation == 0) return invalid("no incarnation");
  if (options.self.address.empty() ||
      options.self.address.size() > kMaxAddress) {
    return invalid("no usable address");
  }
  if (options.expected.size() > kMaxWorldSize) {
    return invalid(absl::StrCat("it expects ", options.expected.size(),
                                " workers by name"));
  }
  for (const std::string& name : options.expected) {
    RETURN_IF_ERROR(CheckWorkerName(name));
  }
  return absl::OkStatus();
}

absl::Status CheckWorldSize(const JoinOptions& options, int max_members) {
  if (max_members == 0 || options.world_size <= max_members)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("worker ", options.self.name, " expects a cluster of ",
                   options.world_size, " workers, but its rendezvous admits ",
                   max_members, " ", kLimit));
}

absl::Status NoRoom(const JoinOptions& options, int max_members) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cluster ", options.cluster, " has ", max_members,
      " members, trainers counted, as many as its rendezvous admits ", kLimit,
      "; worker ", options.self.name, " may join once one of them has gone"));
}

absl::Status TwoOfOneName(const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrCat("two workers came with the name ", name,
                   "; give each worker a name of its own"));
}

absl::Status TooLateOrTwice(const JoinOptions& options, size_t members) {
  return absl::AlreadyExistsError(absl::StrCat(
      "cluster ", options.cluster, " is complete with ", members,
      " workers; worker ", options.self.name,
      " came too late or twice; with another name it may join as one more "
      "(--extra)"));
}

std::string WhoIsMissing(const JoinOptions& options,
                         const std::vector<JoinOptions>& workers) {
  if (options.world_size == kOneMore) {
    return absl::StrCat("cluster ", options.cluster, " has not met within ",
                        options.timeout.count(), " ms; worker ",
                        options.self.name, " can join it once it has");
  }
  const std::vector<std::string> came = Names(workers);
  std::vector<std::string> missing;
  for (const std::string& name : options.expected) {
    if (std::find(came.begin(), came.end(), name) == came.end()) {
      missing.push_back(name);
    }
  }
  const size_t count = static_cast<size_t>(options.world_size) - came.size();
  return absl::StrCat("cluster ", options.cluster, ": ", came.size(), " of ",
                      options.world_size, " workers came within ",
                      options.timeout.count(), " ms (",
                      absl::StrJoin(came, ", "), "); missing: ",
                      missing.empty() ? absl::StrCat(count, " more")
                                      : absl::StrJoin(missing, ", "));
}

}  // namespace baton::rpc::internal
