// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What an all_reduce takes between processes of this machine that have a core
// each, all of them in one cluster.
//   collectives_bench [rounds [members]]
// One JSON line a row: the median at the first of them, over rounds of each.

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/parallel.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/collectives/process_group.h"
#include "rpc/rendezvous.h"
#include "tests/bench/timing.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::rpc {
namespace {

constexpr int64_t kSizes[] = {8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20};
constexpr int64_t kBytesOfARow = int64_t{1} << 30;

struct Role {
  int rank = 0, members = 2, rounds = 1;
  std::string rendezvous = {};
};

// Core after core, if there are so many.
void Pin(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(rank), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    std::fprintf(stderr, "rank %d has no core of its own\n", rank);
  SetComputeThreads(1);
}

absl::Status Measure(const Role& role) {
  Pin(role.rank);
  ClusterOptions options;
  options.name = absl::StrCat("w", role.rank);
  options.rank = role.rank;
  options.rendezvous = role.rendezvous;
  options.world_size = role.members;
  options.agent.on_start = AttachCollectives;
  Registry registry;
  RegisterCollectives(registry);
  ASSIGN_OR_RETURN(const auto agent,
                   JoinCluster(std::move(options), std::move(registry)));
  ASSIGN_OR_RETURN(const auto group, ProcessGroup::Make(*agent).Await());
  for (int round = 0; round < role.rounds; ++round) {
    for (const int64_t bytes : kSizes) {
      const Tensor x = Tensor::Ones({bytes / 4});
      absl::Status status;
      const int count =
          static_cast<int>(std::min<int64_t>(2000, kBytesOfARow / bytes));
      const double median = bench::TimeOf(count, [&] {
        const absl::Status done = group->AllReduce(x, ReduceOp::kMax).Await();
        if (status.ok()) status = done;
      });
      RETURN_IF_ERROR(status);
      if (role.rank > 0) continue;
      std::printf("{\"what\": \"all_reduce %lld\", \"median_us\": %.1f}\n",
                  static_cast<long long>(bytes), median);
      std::fflush(stdout);
    }
  }
  return group->Barrier().Await();
}

absl::Status Lead(Role role) {
  ASSIGN_OR_RETURN(const auto server, RendezvousServer::Make("127.0.0.1:0"));
  role.rendezvous = server->address();
  std::vector<std::unique_ptr<ChildProcess>> others;
  for (int rank = 1; rank < role.members; ++rank) {
    others.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
        testing::ProgramPath("collectives_bench"), absl::StrCat(role.rounds),
        absl::StrCat(role.members), absl::StrCat(rank), role.rendezvous}));
  }
  RETURN_IF_ERROR(Measure(role));
  for (auto& other : others) other->Wait();
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::rpc

int main(int argc, char** argv) {
  baton::rpc::Role role;
  if (argc > 1) role.rounds = std::atoi(argv[1]);
  if (argc > 2) role.members = std::atoi(argv[2]);
  if (argc > 3) role.rank = std::atoi(argv[3]);
  if (argc > 4) role.rendezvous = argv[4];
  const absl::Status status = role.rendezvous.empty()
                                  ? baton::rpc::Lead(role)
                                  : baton::rpc::Measure(role);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
