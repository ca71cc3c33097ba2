// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>

#include "core/future.h"
#include "rpc/channels/dense_view.h"
#include "rpc/channels/nccl_end.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"
#include "tests/rpc/held_port.h"
#include "tests/rpc/nccl/fake_nccl.h"

// A peer that says anything: its words and tickets are those of an honest one,
// altered, repeated and made up, in any order.
namespace baton::rpc {
namespace {

constexpr std::chrono::seconds kLimit{30};

struct Side {
  Side(const std::shared_ptr<FakeMachine>& machine,
       const std::shared_ptr<FakeFabric>& fabric, int own)
      : gpu(std::make_shared<FakeGpu>(machine, own)),
        parts{.gpu = gpu,
              .nccl = std::make_shared<FakeNccl>(fabric, own),
              .poller = std::make_shared<Poller>("poll"),
              .rescuer = std::make_shared<Poller>("loss"),
              .executor = std::make_shared<ThreadPool>(1, "end"),
              .breaks = std::make_shared<std::atomic<int>>(0),
              .options = {.trusted_fabric = true,
                          .grace = std::chrono::milliseconds(0)}},
        end(std::make_shared<NcclEnd>(parts, own == 0, port)) {}

  void OnSaid(std::string words) {
    end->OnSaid(std::move(words));
    Settle();
  }
  // What was posted has run, and what that posted; what can end has.
  void Settle() {
    for (int depth = 0; depth < 3; ++depth) {
      Promise<void> polled;
      parts.poller->Add([polled] {
        polled.Set(absl::OkStatus());
        return true;
      });
      ASSERT_TRUE(polled.future().Await(kLimit).ok());
      Promise<void> ran;
      parts.executor->Post([ran] { ran.Set(absl::OkStatus()); });
      ASSERT_TRUE(ran.future().Await(kLimit).ok());
    }
  }

  std::shared_ptr<FakeGpu> gpu;
  NcclParts parts;
  std::shared_ptr<HeldPort> port = std::make_shared<HeldPort>();
  std::shared_ptr<NcclEnd> end;
};

// Alice is honest, bob is not.
class Encounter {
 public:
  explicit Encounter(uint32_t seed) : random_(seed) {}

  void Run() {
    alice_.end->Start();
    alice_.Settle();
    if (Below(4) > 0) Meet();
    // Whoever is told that the connection broke ends it.
    for (int step = 0; step < 120 && !alice_.port->broken(); ++step) Step();
    breaks += alice_.port->broken();
    for (Side* side : {&alice_, &bob_}) {
      side->end->OnLost();
      side->Settle();
      side->end.reset();
      side->parts.poller.reset();
      side->parts.rescuer.reset();
    }
    EXPECT_TRUE(AwaitAborts(kLimit));
    EXPECT_EQ(fabric_->lines, 0);
    for (const Tensor& tensor : alices_)
      EXPECT_EQ(tensor.storage().use_count(), 1);
  }

  int taken = 0, refused = 0;  // tensors that bob sent
  int breaks = 0;

 private:
  size_t Below(size_t count) { return random_() % count; }

  // As two honest ones do.
  void Meet() {
    for (int i = 0; i < 100 && !(alice_.port->open() && bob_.port->open());
         ++i) {
      while (const auto words = alice_.port->TakeSaid()) bob_.OnSaid(*words);
      while (const auto words = bob_.port->TakeSaid()) alice_.OnSaid(*words);
      alice_.Settle();
      bob_.Settle();
    }
    EXPECT_TRUE(alice_.port->open() && bob_.port->open());
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

  void Step() {
    switch (Below(8)) {
      case 0:
      case 1:
        return Tell();
      case 2:
      case 3:
        if (const auto words = alice_.port->TakeSaid()) bob_.OnSaid(*words);
        return;
      case 4:
        if (Below(6) == 0) alice_.OnSaid(Altered(last_));
        return;
      case 5:
        return SendToAlice();
      case 6:
        return SendToBob();
      default:
        fabric_->stuck = Below(4) == 0;
    }
  }

  void Tell() {
    const auto words = bob_.port->TakeSaid();
    if (!words.has_value()) return;
    last_ = *words;
    alice_.OnSaid(Below(8) == 0 ? Altered(*words) : *words);
  }

  void SendToAlice() {
    const Tensor tensor = bobs_[Below(bobs_.size())];
    if (auto ticket = bob_.end->Export(tensor)) {
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
    const auto ticket = alice_.end->Export(tensor);
    if (!ticket.has_value()) return;
    if (Below(4) == 0) return alice_.end->Withdraw(ticket->lease);
    (void)bob_.end->Import(SpecOf(tensor), ticket->ticket);
    bob_.Settle();
  }

  std::mt19937 random_;
  const std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  const std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  Side alice_{machine_, fabric_, 0}, bob_{machine_, fabric_, 1};
  const std::vector<Tensor> alices_ = {alice_.gpu->Numbers(100),
                                       alice_.gpu->Numbers(3)};
  const std::vector<Tensor> bobs_ = {bob_.gpu->Numbers(100, 1),
                                     bob_.gpu->Numbers(7, 1),
                                     bob_.gpu->Numbers(16'000, 1)};
  std::string last_, last_ticket_;  // of bob's
};

TEST(NcclHostile, WhateverAPeerSaysNothingIsLeftBehind) {
  int taken = 0, refused = 0, breaks = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Encounter encounter(seed);
    encounter.Run();
    taken += encounter.taken;
    refused += encounter.refused;
    breaks += encounter.breaks;
  }
  // Far fewer than there are, as threads decide.
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 50);
  EXPECT_GT(breaks, 20);
}

}  // namespace
}  // namespace baton::rpc
