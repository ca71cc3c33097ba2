// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/memory.h"
#include "rpc/collectives/process_group.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"

namespace baton::testing {

// How the members of a group reach each other.
struct GroupKind {
  std::string name;
  TransportKind transport = TransportKind::kInProcess;
  bool shared_memory = true;
  bool gpus = false;  // each has one
};

// How many members tests of so many have here. Says why where they are fewer.
inline int MembersHere(int members) {
  if (!test::TestDevice().is_cuda()) return members;
  const int gpus = cuda::DeviceCount();
  if (gpus >= members) return members;
  std::cout << members << " members are " << gpus
            << " here: NCCL takes one GPU for each, and there are no more\n";
  return gpus;
}

// Workers of one process that are all in one group. Confined to the test's
// thread.
class Groups {
 public:
  using Group = std::shared_ptr<rpc::ProcessGroup>;

  explicit Groups(int members, const GroupKind& kind = {.name = "Shared"},
                  std::chrono::milliseconds timeout = std::chrono::seconds(30))
      : gpus_(kind.gpus), cluster_(OptionsFor(members, kind)) {
    options_.timeout = timeout;
    options_.shared_memory = kind.shared_memory;
    std::vector<rpc::ProcessGroup::Made> made;
    for (int i = 0; i < members; ++i)
      made.push_back(rpc::ProcessGroup::Make(agent(i), options_));
    for (auto& each : made) {
      auto group = each.Await(std::chrono::seconds(30));
      EXPECT_THAT(group, IsOk());
      groups_.push_back(group.ok() ? *group : nullptr);
    }
  }

  size_t size() const { return groups_.size(); }
  const Group& operator[](size_t rank) const { return groups_[rank]; }
  rpc::Agent& agent(int i) { return cluster_[static_cast<size_t>(i)]; }
  LocalCluster& cluster() { return cluster_; }
  const rpc::GroupOptions& options() const { return options_; }
  static std::string NameOf(int i) { return absl::StrCat("w", i); }
  // Of the tensors that a member gives.
  Device device(size_t rank) const {
    return gpus_ ? Device::Cuda(static_cast<int>(rank)) : Device::Cpu();
  }
  // Its last handle here.
  void Drop(size_t rank) { groups_[rank] = nullptr; }

  // What each member's call comes to, each on a thread of its own.
  std::vector<absl::Status> Each(
      const std::function<Future<void>(size_t rank, rpc::ProcessGroup&)>& call)
      const {
    std::vector<absl::Status> results(groups_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < groups_.size(); ++i) {
      threads.emplace_back([&, i] {
        results[i] = call(i, *groups_[i]).Await(std::chrono::seconds(60));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
  void ExpectEach(
      const std::function<Future<void>(size_t rank, rpc::ProcessGroup&)>& call)
      const {
    for (const absl::Status& status : Each(call)) EXPECT_THAT(status, IsOk());
  }

 private:
  static ClusterOptions OptionsFor(int members, const GroupKind& kind) {
    ClusterOptions options;
    options.names.clear();
    for (int i = 0; i < members; ++i) options.names.push_back(NameOf(i));
    options.fill = rpc::RegisterCollectives;
    options.on_start = rpc::AttachCollectives;
    options.transports = MakerOf(kind.transport);
    for (int i = 0; i < members && kind.gpus; ++i)
      options.compute[NameOf(i)].device = Device::Cuda(i);
    return options;
  }

  const bool gpus_;
  LocalCluster cluster_;
  rpc::GroupOptions options_;
  std::vector<Group> groups_;
};

}  // namespace baton::testing
