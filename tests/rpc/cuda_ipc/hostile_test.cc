// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/future.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/cuda_ipc.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/held_port.h"

// A peer that says anything: its payload and tickets are those of an honest
// one, altered, repeated and made up, in any order.
namespace baton::rpc {
namespace {

struct Side {
  Side(const std::shared_ptr<FakeMachine>& machine, int own)
      : gpu(std::make_shared<FakeGpu>(machine, own)) {}

  void OnControl(std::string payload) {
    end->OnControl(std::move(payload));
    Settle();
  }
  // What was posted has run, what that posted too, and copies that can end
  // have.
  void Settle() {
    for (int depth = 0; depth < 2; ++depth) {
      Promise<void> ran;
      executor->Post([ran] { ran.Set(absl::OkStatus()); });
      ASSERT_TRUE(ran.future().Await(kLimit).ok());
    }
    Promise<void> polled;
    poller->Add([polled] {
      polled.Set(absl::OkStatus());
      return true;
    });
    ASSERT_TRUE(polled.future().Await(kLimit).ok());
  }

  static constexpr std::chrono::seconds kLimit{30};
  std::shared_ptr<FakeGpu> gpu;
  std::shared_ptr<Poller> poller = std::make_shared<Poller>("poll");
  std::shared_ptr<ThreadPool> executor = std::make_shared<ThreadPool>(1, "end");
  std::shared_ptr<HeldPort> port = std::make_shared<HeldPort>();
  std::shared_ptr<CudaIpcEnd> end = std::make_shared<CudaIpcEnd>(
      gpu, IpcReach::kAllGpus, poller, executor, port);
};

// Alice is honest, bob is not.
class Encounter {
 public:
  explicit Encounter(uint32_t seed) : random_(seed) {}

  void Run() {
    alice_.end->Start();
    alice_.Settle();
    if (Below(4) > 0) Meet();
    for (int step = 0; step < 120; ++step) Step();
    for (Side* side : {&alice_, &bob_}) {
      side->end->OnLost();
      side->Settle();
      EXPECT_EQ(side->end->info().leases, 0u);
      side->end.reset();
      side->poller.reset();
    }
    EXPECT_EQ(machine_->opened, 0);
    EXPECT_EQ(machine_->shared, 0);
  }

  int taken = 0, refused = 0;  // tensors that bob sent

 private:
  size_t Below(size_t count) { return random_() % count; }

  // As two honest ones do.
  void Meet() {
    for (int i = 0; i < 4; ++i) {
      // Once each has opened, what the tensors need is passed.
      for (const Tensor& tensor : bobs_) {
        if (const auto ticket = Sent(bob_, tensor))
          bob_.end->Withdraw(ticket->lease);
      }
      while (const auto payload = alice_.port->TakeSaid())
        bob_.OnControl(*payload);
      while (const auto payload = bob_.port->TakeSaid())
        alice_.OnControl(*payload);
    }
    EXPECT_TRUE(alice_.port->open() && bob_.port->open());
    for (const uint64_t lease : bob_.port->TakeReleased())
      EXPECT_TRUE(alice_.end->OnReleased(lease).ok());
  }

  std::string Altered(std::string bytes) {
    if (bytes.empty() || Below(2) == 0) return bytes;
    const size_t at = Below(bytes.size());
    switch (Below(4)) {
      case 0:
        return bytes.substr(0, at);
      case 1:
        bytes.insert(at, 1, static_cast<char>(random_()));
        return bytes;
      default:
        bytes[at] = static_cast<char>(random_());
        return bytes;
    }
  }

  // Nobody checks how large a segment is said to be.
  static std::string WithTrueSize(std::string bytes) {
    wire::CudaIpcControl payload;
    if (!payload.ParseFromString(bytes) || !payload.has_passed()) return bytes;
    payload.mutable_passed()->set_bytes(
        std::min<uint64_t>(payload.passed().bytes(), FakeGpu::kSegmentBytes));
    return payload.SerializeAsString();
  }

  void Step() {
    switch (Below(8)) {
      case 0:
      case 1:
        return Tell();
      case 2:
        if (const auto payload = alice_.port->TakeSaid())
          bob_.OnControl(*payload);
        return;
      case 3:
        return alice_.OnControl(WithTrueSize(Altered(last_)));
      case 4:
        return SendToAlice();
      case 5:
        return SendToBob();
      case 6:
        return GiveBack();
      default:
        machine_->busy = Below(4) == 0;
    }
  }

  void Tell() {
    machine_->busy = false;  // proofs are waited for
    const auto payload = bob_.port->TakeSaid();
    if (!payload.has_value()) return;
    last_ = *payload;
    alice_.OnControl(WithTrueSize(Altered(*payload)));
  }

  std::optional<Ticket> Sent(Side& side, const Tensor& tensor) {
    if (!side.port->open()) return std::nullopt;
    auto ticket = side.end->Export(tensor);
    side.Settle();
    return ticket;
  }

  void SendToAlice() {
    const Tensor tensor = bobs_[Below(bobs_.size())];
    if (auto ticket = Sent(bob_, tensor)) {
      last_ticket_ = ticket->ticket;
    } else if (Below(4) > 0) {
      return;
    }
    TensorSpec spec = SpecOf(tensor);
    if (Below(4) == 0) {
      const auto count = static_cast<int64_t>(Below(40'000));
      spec = {.dtype = DType::kF32,
              .shape = Shape({count}),
              .bytes = static_cast<uint64_t>(count) * 4};
    }
    const auto got = alice_.end->Import(spec, Altered(last_ticket_));
    ++(got.ok() ? taken : refused);
    if (got.ok()) {
      EXPECT_EQ(got->tensor.nbytes(), spec.bytes);
    }
    alice_.Settle();
  }

  void SendToBob() {
    const Tensor tensor = alices_[Below(alices_.size())];
    const auto ticket = Sent(alice_, tensor);
    if (!ticket.has_value()) return;
    (void)bob_.end->Import(SpecOf(tensor), ticket->ticket);
    bob_.Settle();
  }

  void GiveBack() {
    for (const uint64_t lease : alice_.port->TakeReleased())
      (void)bob_.end->OnReleased(lease);
    for (const uint64_t lease : bob_.port->TakeReleased()) {
      (void)alice_.end->OnReleased(lease);
      (void)alice_.end->OnReleased(lease + Below(3));
    }
  }

  std::mt19937 random_;
  const std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  Side alice_{machine_, 0}, bob_{machine_, 1};
  const std::vector<Tensor> alices_ = {alice_.gpu->Numbers(100),
                                       alice_.gpu->Numbers(3, 1)};
  const std::vector<Tensor> bobs_ = {bob_.gpu->Numbers(100, 1),
                                     bob_.gpu->Numbers(7, 0),
                                     bob_.gpu->Numbers(16'000, 1)};
  std::string last_, last_ticket_;  // of bob's
};

TEST(CudaIpcHostile, WhateverAPeerSaysNothingIsLeftBehind) {
  int taken = 0, refused = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Encounter encounter(seed);
    encounter.Run();
    taken += encounter.taken;
    refused += encounter.refused;
  }
  EXPECT_GT(taken, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace baton::rpc
