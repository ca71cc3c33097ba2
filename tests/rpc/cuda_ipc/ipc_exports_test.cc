// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/ipc_tensors.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/cuda_ipc/fake_gpu.h"

namespace baton::rpc {
namespace {

// A segment goes back to the device only when nobody has it open.
TEST(IpcExports, SegmentsThatAreNotUsedAreClosedAndMayBePassedAgain) {
  const auto machine = std::make_shared<FakeMachine>();
  const auto gpu = std::make_shared<FakeGpu>(machine, 0);
  IpcExports exports(gpu, IpcReach::kOneGpu);
  const auto first = exports.PassFirst(0);
  ASSERT_TRUE(first.ok()) << first.status();
  std::optional<IpcExports::Need> need;
  const Tensor tensor = gpu->Numbers(10);
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
  EXPECT_FALSE(need.has_value()) << "its GPU is not proved yet";
  wire::CudaIpcTicket proof;
  ASSERT_TRUE(proof.ParseFromString(first->proof()));
  const uint64_t sum = SumOf(gpu->proof());
  ASSERT_TRUE(exports.OnOpened(first->segment(), "", sum).ok());
  ASSERT_TRUE(exports.GiveBack(proof.lease()).ok());
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
  ASSERT_TRUE(need.has_value());
  const auto passed = exports.Pass(need->place);
  ASSERT_TRUE(passed.ok()) << passed.status();
  ASSERT_TRUE(exports.OnOpened(passed->segment(), "", 0).ok());
  // Else segments that are needed in turn would close each other for ever.
  EXPECT_TRUE(exports.TakeIdle(std::chrono::seconds(10)).empty())
      << "not used yet, but opened only now";
  const auto ticket = exports.Export(tensor, need);
  ASSERT_TRUE(ticket.has_value());
  constexpr std::chrono::milliseconds kNow{0};
  EXPECT_TRUE(exports.TakeIdle(kNow).empty()) << "a tensor is on its way";
  ASSERT_TRUE(exports.GiveBack(ticket->lease).ok());
  EXPECT_TRUE(exports.TakeIdle(std::chrono::hours(1)).empty());
  exports.OnClosed(passed->segment());
  EXPECT_EQ(machine->shared, 2) << "nobody asked for that";
  EXPECT_EQ(exports.TakeIdle(kNow), std::vector<uint32_t>{passed->segment()});
  need.reset();
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
  EXPECT_FALSE(need.has_value()) << "not before it is closed";
  exports.OnClosed(passed->segment());
  EXPECT_EQ(machine->shared, 1);
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
  ASSERT_TRUE(need.has_value());
  const auto again = exports.Pass(need->place);
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again->segment(), passed->segment());
}

// Whoever is believed here has the lease of a segment that is then passed,
// which would be closed under it.
TEST(IpcExports, ASegmentThatWasNotPassedYetIsNotOpen) {
  const auto machine = std::make_shared<FakeMachine>();
  const auto gpu = std::make_shared<FakeGpu>(machine, 0);
  IpcExports exports(gpu, IpcReach::kOneGpu);
  const auto first = exports.PassFirst(0);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(exports.OnOpened(first->segment(), "", SumOf(gpu->proof())).ok());
  const Tensor tensor = gpu->Numbers(10);
  std::optional<IpcExports::Need> need;
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(exports.OnOpened(0, "", 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(exports.Export(tensor, need).has_value());
}

}  // namespace
}  // namespace baton::rpc
