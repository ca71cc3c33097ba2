// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/rpc/shared_memory_pair.h"

// Tensors that are made where the other end of shared memory sees them.
namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

class MadeTensor : public SharedMemoryPair {
 protected:
  static TensorSpec Spec(const Shape& shape, DType dtype = DType::kF32) {
    return {dtype, shape, MemoryFormat::kContiguous,
            static_cast<uint64_t>(shape.numel()) * SizeOf(dtype)};
  }
  // Of 20 KB unless told otherwise; the first segment has room for three.
  Tensor Make(const Shape& shape = {5000}) {
    return alice_.channel->Make(Spec(shape));
  }
  // Without a copy, or not at all.
  Tensor SendInPlace(Tensor& tensor) {
    const TensorSpec spec = SpecOf(tensor);
    const auto ticket = alice_.channel->ExportInPlace(tensor);
    if (!ticket.has_value()) return {};
    EXPECT_FALSE(tensor.defined());
    const auto got = bob_.channel->Import(spec, ticket->ticket);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? got->tensor : Tensor();
  }
  TensorChannelInfo Info() { return alice_.channel->info(); }
};

TEST_F(MadeTensor, ArrivesAsItWasWritten) {
  Open();
  Tensor tensor = alice_.channel->Make(Spec({4000}, DType::kI64));
  ASSERT_TRUE(tensor.defined());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % 64, 0u);
  const Tensor expected = Tensor::Arange(4000);
  tensor.CopyFrom(expected);
  EXPECT_EQ(Info().made_bytes, 32000u);
  EXPECT_EQ(Info().leases, 0u);
  const Tensor got = SendInPlace(tensor);
  ASSERT_TRUE(got.defined());
  EXPECT_EQ(got.ToVector<int64_t>(), expected.ToVector<int64_t>());
  EXPECT_EQ(Info().made_bytes, 0u);
  EXPECT_EQ(Info().leases, 1u);
  EXPECT_EQ(Info().sent_in_place, 1u);
  EXPECT_EQ(Info().tensors_sent, 1u);
  EXPECT_EQ(Info().bytes_sent, 32000u);
}

TEST_F(MadeTensor, KeepsItsFormat) {
  Open();
  TensorSpec spec = Spec({2, 16, 20, 20});
  spec.format = MemoryFormat::kChannelsLast;
  Tensor tensor = alice_.channel->Make(spec);
  ASSERT_TRUE(tensor.defined());
  EXPECT_TRUE(tensor.IsContiguous(MemoryFormat::kChannelsLast));
  const Tensor expected =
      Tensor::Arange(spec.shape.numel(), DType::kF32).Reshape(spec.shape);
  tensor.CopyFrom(expected);
  const Tensor got = SendInPlace(tensor);
  ASSERT_TRUE(got.defined());
  EXPECT_TRUE(got.IsContiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(got.ToVector<float>(), expected.ToVector<float>());
}

TEST_F(MadeTensor, IsSentUnderAnotherShapeToo) {
  Open();
  Tensor tensor = Make();
  tensor.Fill(4);
  tensor = tensor.Reshape({50, 100});
  const Tensor got = SendInPlace(tensor);
  ASSERT_TRUE(got.defined());
  EXPECT_EQ(got.shape(), Shape({50, 100}));
  EXPECT_EQ(got.Slice(0, 49, 50).ToVector<float>(),
            std::vector<float>(100, 4.0F));
}

TEST_F(MadeTensor, IsNotTakenWhileAnybodyElseHoldsIt) {
  Open();
  Tensor tensor = Make();
  Tensor second = tensor;
  EXPECT_FALSE(alice_.channel->ExportInPlace(tensor).has_value());
  ASSERT_TRUE(tensor.defined());
  second = tensor.Slice(0, 0, 1);
  EXPECT_FALSE(alice_.channel->ExportInPlace(tensor).has_value());
  tensor.Fill(1);
  const Tensor copied = Send(tensor);
  EXPECT_NE(copied.raw_data(), tensor.raw_data());
  tensor.Fill(2);
  EXPECT_EQ(copied.Slice(0, 4999, 5000).Item(), 1);
  EXPECT_EQ(Info().sent_in_place, 0u);
  second = Tensor();
  EXPECT_EQ(SendInPlace(tensor).Slice(0, 4999, 5000).Item(), 2);
}

TEST_F(MadeTensor, IsNotTakenForAViewOfAPartNorInAnotherOrder) {
  Open();
  Tensor tensor = Make({50, 100});
  tensor.CopyFrom(Tensor::Arange(5000, DType::kF32).Reshape({50, 100}));
  Tensor turned = tensor.Transpose(0, 1);
  tensor = Tensor();
  EXPECT_FALSE(alice_.channel->ExportInPlace(turned).has_value());
  Tensor part = turned.Slice(0, 0, 99);
  EXPECT_EQ(Send(part).ToVector<float>(), part.ToVector<float>());
  turned = Tensor();
  EXPECT_FALSE(alice_.channel->ExportInPlace(part).has_value());
  EXPECT_EQ(Info().made_bytes, 20000u);
  part = Tensor();
  EXPECT_EQ(Info().made_bytes, 0u);
}

TEST_F(MadeTensor, IsNotTakenForAnotherPeer) {
  Open();
  Tensor tensor = bob_.channel->Make(Spec({5000}));
  ASSERT_TRUE(tensor.defined());
  tensor.Fill(3);
  EXPECT_FALSE(alice_.channel->ExportInPlace(tensor).has_value());
  EXPECT_EQ(Send(tensor).Slice(0, 0, 1).Item(), 3);
  Tensor ordinary = Tensor::Ones({5000});
  EXPECT_FALSE(bob_.channel->ExportInPlace(ordinary).has_value());
  EXPECT_TRUE(ordinary.defined());
}

TEST_F(MadeTensor, GivesItsRoomBackWhenItIsDropped) {
  Open();
  const void* place = Make().raw_data();
  for (int i = 0; i < 100; ++i) {
    const Tensor tensor = Make();
    ASSERT_TRUE(tensor.defined());
    EXPECT_EQ(tensor.raw_data(), place);
  }
  EXPECT_EQ(Info().made_bytes, 0u);
  EXPECT_EQ(Info().leases, 0u);
  EXPECT_EQ(Info().tensors_sent, 0u);
}

TEST_F(MadeTensor, LeavesItsRoomWithTheLease) {
  Open();
  Tensor tensor = Make();
  const void* place = tensor.raw_data();
  Tensor got = SendInPlace(tensor);
  EXPECT_NE(Make().raw_data(), place);
  got = Tensor();
  PassReleases();
  EXPECT_EQ(Make().raw_data(), place);
}

TEST_F(MadeTensor, WithdrawnLeavesItsRoomAtOnce) {
  Open();
  Tensor tensor = Make();
  const void* place = tensor.raw_data();
  const auto ticket = alice_.channel->ExportInPlace(tensor);
  ASSERT_TRUE(ticket.has_value());
  alice_.channel->Withdraw(ticket->lease);
  EXPECT_EQ(Info().leases, 0u);
  EXPECT_EQ(Make().raw_data(), place);
}

TEST_F(MadeTensor, IsNotToBeHadWhereThereIsNoRoomYet) {
  Connect();
  EXPECT_FALSE(Make({20 << 20}).defined());  // whether open or not
  ASSERT_EQ(alice_.port->AwaitSettled(), "open");
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  Tensor large = Make({2 << 20});
  EXPECT_FALSE(large.defined());
  while (!large.defined() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    large = Make({2 << 20});
  }
  ASSERT_TRUE(large.defined()) << "no room was made";
  EXPECT_EQ(Info().declined, 0u) << "nothing was to be sent";
}

// Those that are sent find no room either, and go by the stream.
TEST_F(MadeTensor, CountsAgainstTheBudget) {
  Open();
  std::vector<Tensor> made;
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (made.size() < 4 && std::chrono::steady_clock::now() < deadline) {
    Tensor tensor = Make({2 << 20});
    if (tensor.defined()) made.push_back(std::move(tensor));
    std::this_thread::yield();
  }
  ASSERT_EQ(made.size(), 4u);
  EXPECT_FALSE(Make({2 << 20}).defined());
  EXPECT_FALSE(alice_.channel->Export(made[0]).has_value());
  EXPECT_LE(Info().capacity_bytes, kBudget);
  EXPECT_EQ(Info().made_bytes, 4u * (8u << 20));
  made.pop_back();
  EXPECT_TRUE(Make({2 << 20}).defined());
}

TEST_F(MadeTensor, OutlivesTheConnectionAndTakesItsSegmentAlong) {
  Open();
  Tensor tensor = Make();
  tensor.Fill(5);
  for (SharedMemorySide* end : {&alice_, &bob_}) {
    end->channel->OnLost();
    EXPECT_EQ(end->channel->info().made_bytes, 0u);
  }
  EXPECT_FALSE(alice_.channel->ExportInPlace(tensor).has_value());
  ASSERT_TRUE(tensor.defined());
  EXPECT_FALSE(Make().defined());
  for (SharedMemorySide* end : {&alice_, &bob_}) {
    end->channel = nullptr;
    end->kind = nullptr;  // joins its thread
  }
  EXPECT_EQ(tensor.Slice(0, 4999, 5000).Item(), 5);
  tensor.Fill(6);
  EXPECT_EQ(tensor.Slice(0, 4999, 5000).Item(), 6);
  EXPECT_THAT(MappingsOfThisProcess(), HasSubstr("memfd:baton"));
  tensor = Tensor();
  EXPECT_THAT(MappingsOfThisProcess(),
              ::testing::Not(HasSubstr("memfd:baton")));
}

// While others make, drop and send, the connection ends.
TEST_F(MadeTensor, MayBeMadeAndDroppedWhileTheConnectionEnds) {
  Open();
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        Tensor tensor = Make();
        if (!tensor.defined()) {
          if (Info().capacity_bytes == 0) return;
          continue;
        }
        tensor.Fill(1);
        ++made;
        const auto ticket = alice_.channel->ExportInPlace(tensor);
        if (ticket.has_value()) alice_.channel->Withdraw(ticket->lease);
      }
    });
  }
  while (made < 1000) std::this_thread::yield();
  alice_.channel->OnLost();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Info().leases, 0u);
  EXPECT_EQ(Info().made_bytes, 0u);
}

}  // namespace
}  // namespace baton::rpc
