// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/cuda/nccl_group.h"
#include "rpc/channels/poller.h"
#include "rpc/collectives/backend.h"

namespace baton::rpc {

// Runs collectives of tensors on this member's GPU by NCCL; each member has one
// GPU. Run enqueues the work on the group's stream at once. If another member
// calls something else, that is noticed only when the deadline has passed. The
// only member of a group does not use NCCL.
class NcclBackend final : public CollectiveBackend {
 public:
  // `group` is null for the only member of a group.
  NcclBackend(Device device, int rank, int members,
              std::shared_ptr<cuda::NcclGroup> group);
  ~NcclBackend() override;

  std::string name() const override { return "nccl"; }
  bool Takes(Device device) const override { return device == device_; }
  bool waits() const override { return false; }
  Future<void> Run(const CollectiveWork& work) override;
  void Abort(const absl::Status& why) override;
  void Leave(int rank, const absl::Status& why) override;

  // Returns the stream on which the collectives run.
  Stream stream() const;
  // Waits until all work given to Run so far has ended. Returns
  // DeadlineExceeded if it has not by the deadline.
  absl::Status AwaitEnd(std::chrono::steady_clock::time_point deadline) const;

 private:
  class Watch;
  absl::Status Give(const CollectiveWork& work);
  absl::Status GiveAlone(const CollectiveWork& work) const;

  const Device device_;
  const int rank_;
  const std::vector<int> all_;  // ranks
  const std::shared_ptr<cuda::NcclGroup> group_;
  const std::shared_ptr<Watch> watch_;
  Poller poller_{"baton-nccl"};
};

}  // namespace baton::rpc
