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

// Collectives of the tensors of one GPU, among members with a GPU each, by
// NCCL. What Run is given goes to the group's stream at once; that others do
// something else shows when the deadline has passed. A single member has no
// need of NCCL.
class NcclBackend final : public CollectiveBackend {
 public:
  // `group`: null for the only member.
  NcclBackend(Device device, int rank, int members,
              std::shared_ptr<cuda::NcclGroup> group);
  ~NcclBackend() override;

  std::string name() const override { return "nccl"; }
  bool Takes(Device device) const override { return device == device_; }
  bool waits() const override { return false; }
  Future<void> Run(const CollectiveWork& work) override;
  void Abort(const absl::Status& why) override;
  void Leave(int rank, const absl::Status& why) override;

  // What carries them.
  Stream stream() const;
  // Of all that Run was given by now.
  Future<void> Ended() const;

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
