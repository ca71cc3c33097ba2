// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A worker in a process of its own that runs one kind of collective over and
// over (send_receive: round the ring), until its group breaks, and goes on with
// those that are left:
//   group_member NAME RENDEZVOUS WORLD_SIZE KIND NUMBER
// Writes "running" once some are done, "broken STATUS" when the group is, then
// "mean VALUE of SIZE" of the survivors' NUMBERs, and ends when its input does.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "core/tensor.h"
#include "rpc/collectives/process_group.h"
#include "tests/rpc/collectives/calls_of_kinds.h"
#include "tests/support/join_member.h"

namespace {

using baton::Device;
using baton::Future;
using baton::Tensor;
using baton::WaitAll;
using baton::rpc::ProcessGroup;
using baton::testing::CallsOfKinds;

constexpr int64_t kCount = 300'000;
constexpr int kRounds = 5;

Future<void> Run(const std::string& kind, const CallsOfKinds& calls) {
  if (kind != "send_receive") return calls.Call(kind);
  return WaitAll({calls.Call("receive"), calls.Call("send")});
}

// As far as it comes; then why it broke.
absl::Status RunUntilBroken(const std::string& kind, ProcessGroup& group,
                            Device device) {
  const CallsOfKinds calls(group, kCount, device);
  for (int round = 0;; ++round) {
    const absl::Status status = Run(kind, calls).Await();
    if (!status.ok()) return status;
    // A member that only sends must not run ahead for good.
    const absl::Status met = group.Barrier().Await();
    if (!met.ok()) return met;
    if (round == kRounds) std::cout << "running" << std::endl;
  }
}

absl::Status GoOn(ProcessGroup& broken, float number, Device device) {
  const auto group = broken.Shrink().Await();
  if (!group.ok()) return group.status();
  const Tensor mean = Tensor::Full({kCount}, number, {.device = device});
  const absl::Status status =
      (*group)->AllReduce(mean, baton::rpc::ReduceOp::kMean).Await();
  if (!status.ok()) return status;
  std::cout << "mean " << mean.Slice(0, kCount - 1, kCount).Item() << " of "
            << (*group)->size() << std::endl;
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto agent = baton::testing::JoinAsMember(argv);
  if (!agent.ok()) {
    std::cout << agent.status() << std::endl;
    return 1;
  }
  const auto group = ProcessGroup::Make(**agent).Await();
  if (!group.ok()) {
    std::cout << group.status() << std::endl;
    return 1;
  }
  const Device device = (*agent)->self().compute.device;
  const absl::Status why = RunUntilBroken(argv[4], **group, device);
  std::cout << "broken " << why << std::endl;
  const absl::Status status =
      GoOn(**group, static_cast<float>(std::atof(argv[5])), device);
  if (!status.ok()) std::cout << status << std::endl;
  while (std::getchar() != EOF) {
  }
  return 0;
}
