// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What an all_reduce takes between processes of this machine that have a core,
// or a GPU, each, all of them in one cluster.
//   collectives_bench [rounds [members [cpu|cuda]]]
// One JSON line a row: the median at the first of them, over rounds of each. On
// GPUs a call is one of many that are given one after the other, in place, as
// nccl-tests has it; "give_us" is the caller's share of it, and "bus" the bytes
// that pass each GPU's links in a second.

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/parallel.h"
#include "core/status.h"
#include "core/stream.h"
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
// Those that GPUs have by decimal megabytes, as others' figures are.
constexpr int64_t kGpuSizes[] = {8,         4096,       65536,
                                 1'000'000, 10'000'000, 100'000'000};
constexpr int kRepeats = 11, kCallsARepeat = 200;

struct Role {
  int rank = 0, members = 2, rounds = 1;
  std::string device = "cpu";
  std::string rendezvous = {};

  Device own() const {
    return device == "cuda" ? Device::Cuda(rank) : Device::Cpu();
  }
};

void Print(int64_t bytes, const std::string& figures) {
  std::printf("{\"what\": \"all_reduce %lld\", %s}\n",
              static_cast<long long>(bytes), figures.c_str());
  std::fflush(stdout);
}

// Core after core, if there are so many.
void Pin(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(rank), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    std::fprintf(stderr, "rank %d has no core of its own\n", rank);
  SetComputeThreads(1);
}

absl::Status MeasureCpu(const Role& role, ProcessGroup& group, int64_t bytes) {
  const Tensor x = Tensor::Ones({bytes / 4});
  absl::Status status;
  const int count =
      static_cast<int>(std::min<int64_t>(2000, kBytesOfARow / bytes));
  const double median = bench::TimeOf(count, [&] {
    const absl::Status done = group.AllReduce(x, ReduceOp::kMax).Await();
    if (status.ok()) status = done;
  });
  if (role.rank == 0)
    Print(bytes, absl::StrFormat("\"median_us\": %.1f", median));
  return status;
}

absl::Status MeasureGpu(const Role& role, ProcessGroup& group, int64_t bytes) {
  const Tensor x = Tensor::Zeros({bytes / 4}, {.device = role.own()});
  absl::Status status;
  std::vector<double> giving;
  const double repeat = bench::Median(bench::TimesOf(kRepeats, 2, [&] {
    std::vector<Future<void>> calls;
    const auto begin = bench::Clock::now();
    for (int i = 0; i < kCallsARepeat; ++i) calls.push_back(group.AllReduce(x));
    giving.push_back(bench::Microseconds(bench::Clock::now() - begin));
    Synchronize(role.own());
    for (const auto& call : calls) {
      const absl::Status done = call.Await();
      if (status.ok()) status = done;
    }
  }));
  if (role.rank > 0) return status;
  const double us = repeat / kCallsARepeat;
  const double algorithm = static_cast<double>(bytes) / us * 1e-3;
  const int n = role.members;
  Print(bytes, absl::StrFormat("\"median_us\": %.2f, \"give_us\": %.2f, "
                               "\"algorithm_gb_s\": %.2f, \"bus_gb_s\": %.2f",
                               us, bench::Median(giving) / kCallsARepeat,
                               algorithm, algorithm * 2 * (n - 1) / n));
  return status;
}

absl::Status Measure(const Role& role) {
  if (role.own().is_cpu()) Pin(role.rank);
  ClusterOptions options;
  options.name = absl::StrCat("w", role.rank);
  options.rank = role.rank;
  options.rendezvous = role.rendezvous;
  options.world_size = role.members;
  options.device = role.own();
  options.agent.on_start = AttachCollectives;
  Registry registry;
  RegisterCollectives(registry);
  ASSIGN_OR_RETURN(const auto agent,
                   JoinCluster(std::move(options), std::move(registry)));
  ASSIGN_OR_RETURN(const auto group, ProcessGroup::Make(*agent).Await());
  RETURN_IF_ERROR(group->Takes(role.own()));
  for (int round = 0; round < role.rounds; ++round) {
    if (role.own().is_cuda()) {
      for (const int64_t bytes : kGpuSizes)
        RETURN_IF_ERROR(MeasureGpu(role, *group, bytes));
    } else {
      for (const int64_t bytes : kSizes)
        RETURN_IF_ERROR(MeasureCpu(role, *group, bytes));
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
        absl::StrCat(role.members), role.device, absl::StrCat(rank),
        role.rendezvous}));
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
  if (argc > 3) role.device = argv[3];
  if (argc > 4) role.rank = std::atoi(argv[4]);
  if (argc > 5) role.rendezvous = argv[5];
  const absl::Status status = role.rendezvous.empty()
                                  ? baton::rpc::Lead(role)
                                  : baton::rpc::Measure(role);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
