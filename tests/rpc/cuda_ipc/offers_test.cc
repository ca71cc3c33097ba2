// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "rpc/wire.pb.h"
#include "tests/rpc/cuda_ipc/ipc_ends.h"

// Between which workers the channel is chosen.
namespace baton::rpc {
namespace {

TEST_F(CudaIpcTest, OtherMachinesUsersAndThisProcessHaveNone) {
  const std::string ours = *alice_.kind->Offer();
  wire::CudaIpcOffer theirs;
  ASSERT_TRUE(theirs.ParseFromString(OfferOf(bob_, "b")));
  const auto why = [&](const std::string& offer) {
    return std::string(
        alice_.kind->Open({true, ours, offer}, alice_.port).status().message());
  };
  wire::CudaIpcOffer other = theirs;
  other.set_boot_id("another");
  EXPECT_EQ(why(other.SerializeAsString()), "it is on another machine");
  other = theirs;
  other.set_user(theirs.user() + 1);
  EXPECT_EQ(why(other.SerializeAsString()), "it belongs to another user");
  EXPECT_EQ(why(ours), "it is in this process");
  EXPECT_EQ(why("\xff\xff"), "its offer does not parse");
}

TEST_F(CudaIpcTest, OtherGpusAreCrossedToUnlessOneForbidsIt) {
  IpcSide close(machine_, 0, IpcReach::kOneGpu);
  const auto why = [](IpcSide& own, const std::string& theirs) {
    const std::string ours = OfferOf(own, "own");
    return std::string(
        own.kind->Open({true, ours, theirs}, own.port).status().message());
  };
  IpcSide far(machine_, 1, IpcReach::kOneGpu);
  const std::string reason =
      "it has another GPU, and BATON_CUDA_IPC=one is set ";
  EXPECT_EQ(why(close, OfferOf(far, "far")), reason + "here");
  EXPECT_EQ(why(close, OfferOf(bob_, "b")), reason + "here");
  EXPECT_EQ(why(bob_, OfferOf(close, "close")), reason + "there");
  EXPECT_EQ(why(alice_, OfferOf(bob_, "b")), "");
  EXPECT_EQ(why(close, OfferOf(alice_, "a")), "") << "the same GPU";
  // It may have another number there; and who names none has another one.
  wire::CudaIpcOffer offer;
  ASSERT_TRUE(offer.ParseFromString(OfferOf(far, "far")));
  offer.set_gpu(*close.gpu->Uuid());
  EXPECT_EQ(why(close, offer.SerializeAsString()), "");
  offer.clear_gpu();
  EXPECT_EQ(why(close, offer.SerializeAsString()), reason + "here");
}

class OneGpuTest : public CudaIpcTest {
 protected:
  OneGpuTest() {
    alice_ = IpcSide(machine_, 0);
    bob_ = IpcSide(machine_, 0, IpcReach::kOneGpu);
  }
};

TEST_F(OneGpuTest, ItsTensorsTravelSoAndNoOthers) {
  Open();
  const Tensor other = alice_.gpu->Numbers(100, 1);
  const uint64_t declined = alice_.channel->info().declined;
  EXPECT_FALSE(alice_.channel->Export(other).has_value());
  EXPECT_EQ(alice_.channel->info().declined, declined + 1);
  const Tensor tensor = alice_.gpu->Numbers(100);
  const auto got = Import(tensor, Export(tensor));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->device(), Device::Cuda(0));
  EXPECT_TRUE(Equal(*got, tensor));
  // By now the other GPU would have been passed.
  EXPECT_EQ(machine_->shared, 3) << "a proof of each, and the tensor's";
  EXPECT_FALSE(alice_.channel->Export(other).has_value());
}

TEST_F(CudaIpcTest, WithoutAGpuThereIsNoOffer) {
  const auto reason = [&](int own, int count) {
    return std::string(
        MakeCudaIpc(std::make_shared<FakeGpu>(machine_, own, count),
                    IpcReach::kOneGpu)
            ->Offer()
            .status()
            .message());
  };
  EXPECT_EQ(reason(0, 0), "no GPU");
  EXPECT_EQ(reason(2, 2), "no cuda:2 among 2 GPUs");
  EXPECT_EQ(reason(1, 2), "");
}

}  // namespace
}  // namespace baton::rpc
