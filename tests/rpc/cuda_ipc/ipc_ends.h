// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "rpc/channels/channel.h"
#include "rpc/channels/cuda_ipc.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/two_ends.h"

// Two ends of the channel, and GPUs that are none.
namespace baton::rpc {

struct IpcSide : ChannelSide {
  IpcSide(const std::shared_ptr<FakeMachine>& machine, int own,
          IpcReach reach = IpcReach::kAllGpus)
      : gpu(std::make_shared<FakeGpu>(machine, own)) {
    kind = MakeCudaIpc(gpu, reach);
  }
  std::shared_ptr<FakeGpu> gpu;
};

// As another process would.
std::string OfferOf(IpcSide& side, const std::string& process);

class CudaIpcTest : public TwoEnds<IpcSide> {
 protected:
  explicit CudaIpcTest(
      std::shared_ptr<FakeMachine> machine = std::make_shared<FakeMachine>())
      : TwoEnds(IpcSide(machine, 0), IpcSide(machine, 1)),
        machine_(std::move(machine)) {}
  void Open() {
    TwoEnds::Open();
    PassReleases();  // of the proof
  }
  absl::StatusOr<Tensor> Import(const Tensor& tensor, const Ticket& ticket) {
    const auto imported = bob_.channel->Import(SpecOf(tensor), ticket.ticket);
    if (!imported.ok()) return imported.status();
    given_ = imported->given;
    return imported->tensor;
  }
  void PassReleases() {
    for (const uint64_t lease : bob_.port->AwaitReleased())
      EXPECT_TRUE(alice_.channel->OnReleased(lease).ok());
  }

  const std::shared_ptr<FakeMachine> machine_;
  Future<void> given_;  // of what was imported last

 private:
  std::string Offer(IpcSide& side, const std::string& process) override {
    return OfferOf(side, process);
  }
};

}  // namespace baton::rpc
