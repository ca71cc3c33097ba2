// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_messages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "rpc/rendezvous.pb.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLongestWaitMs = 24 * 3600 * 1000;
constexpr int kMaxWorldSize = 65536;
constexpr size_t kMaxAddress = 4096;

// How a limit is set.
constexpr char kLimit[] =
    "(baton-run --max_workers, baton-rendezvous --max_members)";

absl::StatusOr<WorkerInfo> FromMember(const wire::Member& in) {
  ASSIGN_OR_RETURN(const Compute compute, Compute::Parse(in.compute()));
  return WorkerInfo{in.name(), Rank{in.rank()}, in.incarnation(), in.address(),
                    compute};
}

void ToMember(const WorkerInfo& info, wire::Member& out) {
  out.set_name(info.name);
  out.set_rank(static_cast<int32_t>(info.rank));
  out.set_incarnation(info.incarnation);
  out.set_address(info.address);
  out.set_compute(info.compute.ToString());
}

std::vector<std::string> Names(const std::vector<JoinOptions>& workers) {
  std::vector<std::string> names;
  for (const JoinOptions& worker : workers) names.push_back(worker.self.name);
  std::sort(names.begin(), names.end());
  return names;
}

// "1 of 2 workers came within 5 s (alice); missing: bob". One more than the
// world has is not counted.
std::string WhoCame(const JoinOptions& options,
                    const std::vector<JoinOptions>& workers,
                    const std::string& within) {
  std::vector<JoinOptions> counted;
  std::copy_if(
      workers.begin(), workers.end(), std::back_inserter(counted),
      [](const JoinOptions& each) { return each.world_size != kOneMore; });
  const std::vector<std::string> came = Names(counted);
  std::vector<std::string> missing;
  for (const std::string& name : options.expected) {
    if (std::find(came.begin(), came.end(), name) == came.end()) {
      missing.push_back(name);
    }
  }
  const size_t count = static_cast<size_t>(options.world_size) - came.size();
  return absl::StrCat(came.size(), " of ", options.world_size, " workers came",
                      within, " (", absl::StrJoin(came, ", "), "); missing: ",
                      missing.empty() ? absl::StrCat(count, " more")
                                      : absl::StrJoin(missing, ", "));
}

}  // namespace

absl::StatusOr<std::vector<WorkerInfo>> FromWire(const WireMembers& in) {
  std::vector<WorkerInfo> workers;
  for (const wire::Member& member : in) {
    RETURN_IF_ERROR(CheckWorkerName(member.name()));
    ASSIGN_OR_RETURN(WorkerInfo worker, FromMember(member));
    workers.push_back(std::move(worker));
  }
  return workers;
}

void ToWire(const std::vector<WorkerInfo>& workers, WireMembers* out) {
  for (const WorkerInfo& worker : workers) ToMember(worker, *out->Add());
}

absl::StatusOr<MembershipChange> FromWire(const wire::RenewAnswer& in) {
  MembershipChange change{.version = in.version(), .whole = in.whole()};
  ASSIGN_OR_RETURN(change.joined, FromWire(in.members()));
  for (const wire::Departure& gone : in.departed()) {
    change.departed.push_back(
        {gone.name(), gone.incarnation(), gone.lost(), gone.why()});
  }
  return change;
}

void ToWire(const MembershipChange& change, wire::RenewAnswer& out) {
  out.set_version(change.version);
  out.set_whole(change.whole);
  ToWire(change.joined, out.mutable_members());
  for (const MembershipChange::Departed& gone : change.departed) {
    wire::Departure& departed = *out.add_departed();
    departed.set_name(gone.name);
    departed.set_incarnation(gone.incarnation);
    departed.set_lost(gone.lost);
    departed.set_why(gone.why);
  }
}

absl::StatusOr<JoinOptions> FromWire(const wire::JoinRequest& in) {
  ASSIGN_OR_RETURN(const WorkerInfo self, FromMember(in.self()));
  JoinOptions options{.cluster = in.cluster(),
                      .self = self,
                      .wanted_rank = in.self().rank(),
                      .world_size = in.world_size(),
                      .listens = in.listens()};
  options.expected.assign(in.expected().begin(), in.expected().end());
  options.timeout =
      milliseconds(std::clamp<int64_t>(in.timeout_ms(), 1, kLongestWaitMs));
  options.lease =
      milliseconds(std::clamp<int64_t>(in.lease_ms(), 0, kLongestWaitMs));
  return options;
}

void ToWire(const JoinOptions& options, int rank, wire::JoinRequest& out) {
  out.set_cluster(options.cluster);
  ToMember(options.self, *out.mutable_self());
  out.mutable_self()->set_rank(rank);
  out.set_world_size(options.world_size);
  out.set_lease_ms(options.lease.count());
  out.set_listens(options.listens);
  out.mutable_expected()->Assign(options.expected.begin(),
                                 options.expected.end());
}

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

absl::Status HasNotMet(const std::string& cluster,
                       const std::vector<JoinOptions>& waiting,
                       const std::vector<std::string>& met) {
  const auto counted = std::find_if(
      waiting.begin(), waiting.end(),
      [](const JoinOptions& each) { return each.world_size != kOneMore; });
  std::string who = "nobody is here";
  if (counted != waiting.end()) {
    who = WhoCame(*counted, waiting, "");
  } else if (!waiting.empty()) {
    who = absl::StrJoin(Names(waiting), ", ") + " may join once it has";
  } else if (!met.empty()) {
    who = "nobody of it is here; others have: " + absl::StrJoin(met, ", ");
  }
  return absl::NotFoundError(
      absl::StrCat("no cluster ", cluster, " has met here: ", who));
}

absl::Status SomeAreMissing(const JoinOptions& options,
                            const std::vector<JoinOptions>& workers) {
  if (options.world_size == kOneMore) {
    return absl::DeadlineExceededError(
        absl::StrCat("cluster ", options.cluster, " has not met within ",
                     ShownTime(options.timeout), "; worker ", options.self.name,
                     " can join it once it has"));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "cluster ", options.cluster, ": ",
      WhoCame(options, workers, " within " + ShownTime(options.timeout))));
}

}  // namespace baton::rpc::internal
