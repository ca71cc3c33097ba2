// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "rpc/channels/cuda_ipc.h"
#include "rpc/channels/dense_view.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/test_port.h"

// Two ends of the channel, whose words are passed on by the test, and GPUs that
// are none.
namespace baton::rpc {

struct End {
  End(const std::shared_ptr<FakeMachine>& machine, int own,
      IpcReach reach = IpcReach::kAllGpus)
      : gpu(std::make_shared<FakeGpu>(machine, own)),
        kind(MakeCudaIpc(gpu, reach)) {}
  std::shared_ptr<FakeGpu> gpu;
  std::shared_ptr<ChannelKind> kind;
  std::shared_ptr<TestPort> port = std::make_shared<TestPort>();
  std::shared_ptr<Channel> channel;
};

// As another process would.
std::string OfferOf(End& end, const std::string& process);

inline bool Within(std::chrono::seconds limit,
                   const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool Equal(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
}

class CudaIpcTest : public testing::Test {
 protected:
  void Connect() {
    const std::string alices = OfferOf(alice_, "a"), bobs = OfferOf(bob_, "b");
    alice_.channel = *alice_.kind->Open({true, alices, bobs}, alice_.port);
    bob_.channel = *bob_.kind->Open({false, bobs, alices}, bob_.port);
    alice_.port->Connect(bob_.channel);
    bob_.port->Connect(alice_.channel);
    alice_.channel->Start();
  }
  void Open() {
    Connect();
    ASSERT_EQ(alice_.port->AwaitSettled(), "open");
    ASSERT_EQ(bob_.port->AwaitSettled(), "open");
    PassReleases();  // of the proof
  }
  // Once its segment is open.
  Ticket Export(const Tensor& tensor) {
    std::optional<Ticket> ticket;
    EXPECT_TRUE(Within(TestPort::kLimit, [&] {
      ticket = alice_.channel->Export(tensor);
      return ticket.has_value();
    })) << alice_.channel->info().why_not;
    return ticket.value_or(Ticket{});
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

  const std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  End alice_{machine_, 0}, bob_{machine_, 1};
  Future<void> given_;  // of what was imported last
};

}  // namespace baton::rpc
