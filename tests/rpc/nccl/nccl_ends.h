// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/future.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl.h"
#include "rpc/channels/nccl_lines.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/nccl/fake_nccl.h"
#include "tests/rpc/two_ends.h"

// Two ends of the channel, with GPUs and lines that are none.
namespace baton::rpc {

struct NcclSide : ChannelSide {
  NcclSide(const std::shared_ptr<FakeMachine>& machine,
           const std::shared_ptr<FakeFabric>& fabric, int own,
           const NcclOptions& options)
      : gpu(std::make_shared<FakeGpu>(machine, own, 3)),
        nccl(std::make_shared<FakeNccl>(fabric, own)) {
    kind = MakeNccl(gpu, nccl, options);
  }
  std::shared_ptr<FakeGpu> gpu;
  std::shared_ptr<FakeNccl> nccl;
};

class NcclTest : public TwoEnds<NcclSide> {
 protected:
  explicit NcclTest(const NcclOptions& options = {.trusted_fabric = true})
      : NcclTest(options, std::make_shared<FakeMachine>(),
                 std::make_shared<FakeFabric>()) {}
  NcclTest(const NcclOptions& options, std::shared_ptr<FakeMachine> machine,
           std::shared_ptr<FakeFabric> fabric)
      : TwoEnds(NcclSide(machine, fabric, 0, options),
                NcclSide(machine, fabric, 1, options)),
        machine_(std::move(machine)),
        fabric_(std::move(fabric)) {}
  // Nothing is left behind, whatever happened.
  ~NcclTest() override {
    Lose();
    EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
    EXPECT_TRUE(AwaitAborts(kSoon));
    EXPECT_EQ(fabric_->early_receives, 0);
    EXPECT_EQ(fabric_->early_openings, 0);
  }

  // Whether it may be used is in given_.
  absl::StatusOr<Tensor> Import(const Tensor& tensor, const Ticket& ticket) {
    auto imported = bob_.channel->Import(SpecOf(tensor), ticket.ticket);
    if (!imported.ok()) return imported.status();
    given_.push_back(imported->given);
    return imported->tensor;
  }
  // The last tensor may be used, and may not have come yet.
  bool Given() { return given_.back().Await(kSoon).ok(); }
  // A tensor of alice's, and bob's.
  struct Sent {
    Tensor tensor, got;
  };
  // Bob may use his, though nothing comes while `stuck` is set, as it is now.
  Sent SendStuck() {
    fabric_->stuck = true;
    const Tensor tensor = alice_.gpu->Numbers(100);
    const Tensor got = Import(tensor, Export(tensor)).value();
    EXPECT_TRUE(Given());
    return {tensor, got};
  }
  // So many tensors that were exported have not been sent, as far as their
  // senders know.
  bool Left(uint64_t leases) {
    return Within([&] {
      return alice_.channel->info().leases + bob_.channel->info().leases ==
             leases;
    });
  }
  bool Settled() { return Left(0); }
  // Whoever waits for what was posted has looked again and again from now on,
  // and has done what he does when he need not wait.
  bool HaveLookedAgain() {
    const int before = fabric_->questions;
    return Within([&] { return fabric_->questions > before + 50; });
  }

  const std::shared_ptr<FakeMachine> machine_;
  const std::shared_ptr<FakeFabric> fabric_;
  std::vector<Future<void>> given_;
};

}  // namespace baton::rpc
