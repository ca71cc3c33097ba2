// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/future.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl.h"
#include "rpc/channels/nccl_lines.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/nccl/fake_nccl.h"
#include "tests/rpc/test_port.h"

// Two ends of the channel, whose words are passed on by the test, with GPUs and
// lines that are none.
namespace baton::rpc {

struct NcclSide {
  NcclSide(const std::shared_ptr<FakeMachine>& machine,
           const std::shared_ptr<FakeFabric>& fabric, int own,
           const NcclOptions& options)
      : gpu(std::make_shared<FakeGpu>(machine, own, 3)),
        nccl(std::make_shared<FakeNccl>(fabric, own)),
        kind(MakeNccl(gpu, nccl, options)) {}
  std::shared_ptr<FakeGpu> gpu;
  std::shared_ptr<FakeNccl> nccl;
  std::shared_ptr<ChannelKind> kind;
  std::shared_ptr<TestPort> port = std::make_shared<TestPort>();
  std::shared_ptr<Channel> channel;
};

class NcclTest : public testing::Test {
 protected:
  static constexpr auto kSoon = TestPort::kLimit;

  explicit NcclTest(const NcclOptions& options = {.trusted_fabric = true})
      : alice_(machine_, fabric_, 0, options),
        bob_(machine_, fabric_, 1, options) {}
  // Nothing is left behind, whatever happened.
  ~NcclTest() override {
    Lose();
    EXPECT_TRUE(Within([&] { return fabric_->lines == 0; }));
    EXPECT_TRUE(AwaitAborts(kSoon));
    EXPECT_EQ(fabric_->early_receives, 0);
    EXPECT_EQ(fabric_->early_openings, 0);
  }

  static bool Within(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static bool Equal(const Tensor& a, const Tensor& b) {
    return a.nbytes() == b.nbytes() &&
           std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
  }

  void Connect() {
    const std::string alices = *alice_.kind->Offer(),
                      bobs = *bob_.kind->Offer();
    alice_.port = std::make_shared<TestPort>();
    bob_.port = std::make_shared<TestPort>();
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
  }
  void Lose() {
    for (NcclSide* side : {&alice_, &bob_}) {
      if (side->channel != nullptr) side->channel->OnLost();
    }
  }
  // Once the lines of connections before this one have been let go of.
  Ticket Export(const Tensor& tensor) {
    std::optional<Ticket> ticket;
    EXPECT_TRUE(Within([&] {
      ticket = alice_.channel->Export(tensor);
      return ticket.has_value();
    }));
    return ticket.value_or(Ticket{});
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
  // So many tensors that were exported have not been sent, as far as their
  // senders know.
  bool Left(uint64_t leases) {
    return Within([&] {
      return alice_.channel->info().leases + bob_.channel->info().leases ==
             leases;
    });
  }
  bool Settled() { return Left(0); }

  const std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  const std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  NcclSide alice_, bob_;
  std::vector<Future<void>> given_;
};

}  // namespace baton::rpc
