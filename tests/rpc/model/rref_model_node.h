// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/rpc/model/rref_model.h"

namespace baton::rpc::internal {

inline constexpr int kNodes = 3;

inline absl::Status GivenUp() { return absl::UnavailableError("given up"); }

// A worker of the model, and what its users and handlers have under way.
struct RRefModel::Node final : Ownership::Port {
  struct Call {
    int to;
    HandlePtr created = nullptr;
    std::vector<ForkId> forks = {};
  };
  struct Creation {
    Message request;
    WorkerInfo creator;
  };

  explicit Node(int i)
      : index(i),
        info{std::string(1, static_cast<char>('a' + i)), Rank{i},
             static_cast<uint64_t>(i + 1), ""},
        peers(info) {}

  bool SendControl(const WorkerInfo& to, ControlItem item,
                   std::function<void()> acked) override {
    const PeerPtr peer = peers.Current(to);
    return peer != nullptr && peers.Push(*peer, item, std::move(acked));
  }
  absl::Status CheckWorker(const WorkerInfo& worker) override {
    return peers.Find(worker).status();
  }
  void Discard(std::vector<std::shared_ptr<void>> garbage) override {
    discarded.insert(discarded.end(), garbage.begin(), garbage.end());
  }
  void OnOwnershipChanged() override {}

  const int index;
  const WorkerInfo info;
  Peers peers;
  std::shared_ptr<Ownership> table;
  bool dead = false;
  std::map<uint64_t, Call> calls;
  std::vector<Creation> creations;  // begun here
  std::vector<HandlePtr> held;      // by the user
  std::vector<HandlePtr> arriving;  // imported, not confirmed
  std::vector<std::shared_ptr<void>> discarded;
  std::vector<std::weak_ptr<void>> values;
};

}  // namespace baton::rpc::internal
