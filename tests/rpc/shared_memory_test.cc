// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/segment.h"
#include "rpc/wire.pb.h"
#include "tests/rpc/shared_memory_pair.h"

// Two ends of the channel, whose words are passed on by the test.
namespace baton::rpc {
namespace {

using ::testing::HasSubstr;

class SharedMemoryTest : public SharedMemoryPair {
 protected:
  void ConnectWith(const std::function<void(wire::SharedMemoryOffer&)>& alter) {
    Connect([&alter](const std::string& bobs) {
      wire::SharedMemoryOffer offer;
      EXPECT_TRUE(offer.ParseFromString(bobs));
      alter(offer);
      return offer.SerializeAsString();
    });
  }
};

TEST_F(SharedMemoryTest, BothDirectionsOpen) {
  Open();
  const Tensor tensor = Tensor::Arange(1000);
  const auto ticket = bob_.channel->Export(tensor);
  ASSERT_TRUE(ticket.has_value());
  const auto got = alice_.channel->Import(SpecOf(tensor), ticket->ticket);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.ToVector<int64_t>(), tensor.ToVector<int64_t>());
}

TEST_F(SharedMemoryTest, EachEndSeesTheOtherBeat) {
  Open();
  alice_.channel->Beat();
  for (int beat = 0; beat < 3; ++beat) {
    const Channel::Signs bobs = bob_.channel->Beat();
    EXPECT_TRUE(bobs.alive && bobs.seen);
    EXPECT_FALSE(bob_.channel->Beat().alive);  // alice has not beaten again
    const Channel::Signs alices = alice_.channel->Beat();
    EXPECT_TRUE(alices.alive && alices.seen);
  }
  alice_.channel->OnLost();
  EXPECT_FALSE(alice_.channel->Beat().alive);
}

TEST_F(SharedMemoryTest, ElementsOfAnyStridesArriveDense) {
  Open();
  const Tensor base = Tensor::Arange(120, DType::kF32).Reshape({2, 3, 4, 5});
  for (const Tensor& tensor :
       {base, base.Permute({3, 1, 0, 2}), base.Slice(2, 1, 4, 2),
        base.Contiguous(MemoryFormat::kChannelsLast), base.Select(0, 1),
        Tensor::Scalar(3).Expand({7, 9})}) {
    const Tensor got = Send(tensor);
    EXPECT_EQ(got.ToVector<float>(), tensor.ToVector<float>());
    EXPECT_TRUE(got.IsContiguous(tensor.SuggestFormat()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.raw_data()) % 64, 0u);
  }
}

TEST_F(SharedMemoryTest, WritesOnEitherSideStayThere) {
  Open();
  const Tensor tensor = Tensor::Ones({5000});
  const Tensor got = Send(tensor);
  tensor.Fill(2);
  EXPECT_EQ(got.Slice(0, 4999, 5000).Item(), 1);
  got.Fill(3);
  EXPECT_EQ(tensor.Slice(0, 0, 1).Item(), 2);
}

TEST_F(SharedMemoryTest, ABlockIsUsedAgainOnceItsLeaseIsBack) {
  Open();
  const Tensor tensor = Tensor::Ones({5000});
  Tensor first = Send(tensor);
  const void* place = first.raw_data();
  Tensor second = Send(tensor);
  EXPECT_NE(second.raw_data(), place);
  // A view holds it as well.
  Tensor view = first.Slice(0, 1, 2);
  first = Tensor();
  PassReleases();
  EXPECT_NE(Send(tensor).raw_data(), place);
  view = Tensor();
  PassReleases();
  EXPECT_EQ(Send(tensor).raw_data(), place);
  EXPECT_EQ(second.Slice(0, 0, 1).Item(), 1);
}

TEST_F(SharedMemoryTest, RoomIsMadeOnDemandWithinTheBudget) {
  Open();
  const Tensor tensor = Tensor::Ones({2 << 20});  // 8 MB
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value());
  std::vector<Tensor> held;
  for (int i = 0; i < 4; ++i) held.push_back(Send(tensor));
  const TensorChannelInfo full = alice_.channel->info();
  EXPECT_EQ(full.leases, 4u);
  EXPECT_EQ(full.leased_bytes, 4 * tensor.nbytes());
  EXPECT_LE(full.capacity_bytes, kBudget);
  EXPECT_FALSE(alice_.channel->Export(tensor).has_value());
  held.pop_back();
  PassReleases();
  Send(tensor);
  EXPECT_FALSE(alice_.channel->Export(Tensor::Ones({16 << 20})).has_value());
}

// Where GPUs read what peers send.
class PinnedSharedMemory : public SharedMemoryTest {
 protected:
  void OpenPinning(Pin pin) {
    bob_ = SharedMemorySide(kBudget, std::move(pin));
    Open();
  }
};

TEST_F(PinnedSharedMemory, IsPinnedUntilItIsUnmapped) {
  std::atomic<size_t> pinned = 0;
  OpenPinning([&pinned](void* data, size_t bytes) {
    pinned += bytes;
    return std::shared_ptr<void>(data, [&pinned, bytes](void* mapped) {
      // Ends the process where it is not mapped.
      static_cast<volatile char*>(mapped)[0] = 1;
      pinned -= bytes;
    });
  });
  Send(Tensor::Ones({100}));
  EXPECT_EQ(pinned, 0u);
  Tensor got = Send(Tensor::Ones({2 << 20}));
  EXPECT_GE(pinned, got.nbytes());
  Lose();
  EXPECT_GE(pinned, got.nbytes());
  got = Tensor();
  EXPECT_TRUE(Within([&] { return pinned == 0; }));
}

TEST_F(PinnedSharedMemory, CarriesTensorsWhereItCannotBePinned) {
  OpenPinning([](void*, size_t) { return nullptr; });
  EXPECT_EQ(Send(Tensor::Ones({2 << 20})).Slice(0, 7, 8).Item(), 1);
}

// Threads that find no room while it is on its way, or when it has just come,
// need no more of it.
TEST_F(SharedMemoryTest, RoomIsMadeOnceForAllWhoNeedIt) {
  const TensorSpec spec = SpecOf(Tensor::Ones({1 << 18}));
  for (int round = 0; round < 40; ++round) {
    Open();
    std::array<Tensor, 4> made;
    {
      std::vector<std::jthread> threads;
      for (Tensor& each : made) {
        threads.emplace_back([&] {
          while (!each.defined()) each = alice_.channel->Make(spec);
        });
      }
    }
    const uint64_t room = alice_.channel->info().capacity_bytes;
    // Longer than it takes to ask for more.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_LE(alice_.made->taken(), room) << "in round " << round;
    Lose();
  }
}

TEST_F(SharedMemoryTest, AWithdrawnTensorLeavesItsRoom) {
  Open();
  const Tensor tensor = Tensor::Ones({12000});
  for (int i = 0; i < 100; ++i) {
    const auto ticket = alice_.channel->Export(tensor);
    ASSERT_TRUE(ticket.has_value());
    alice_.channel->Withdraw(ticket->lease);
  }
}

TEST_F(SharedMemoryTest, TensorsOutliveBothEndsAndTakeTheirSegmentsAlong) {
  Open();
  Tensor got = Send(Tensor::Arange(5000));
  for (SharedMemorySide* end : {&alice_, &bob_}) {
    end->channel->OnLost();
    end->channel = nullptr;
    end->kind = nullptr;  // joins its thread
  }
  EXPECT_EQ(got.Slice(0, 4999, 5000).Item(), 4999);
  got.Fill(1);
  EXPECT_THAT(MappingsOfThisProcess(), HasSubstr("memfd:baton"));
  got = Tensor();
  EXPECT_THAT(MappingsOfThisProcess(),
              ::testing::Not(HasSubstr("memfd:baton")));
}

TEST_F(SharedMemoryTest, NothingIsTakenAfterALoss) {
  Open();
  alice_.channel->OnLost();
  EXPECT_FALSE(alice_.channel->Export(Tensor::Ones({5000})).has_value());
  EXPECT_EQ(alice_.channel->info().capacity_bytes, 0u);
}

TEST_F(SharedMemoryTest, TicketsThatMakeNoSenseAreRefused) {
  Open();
  const Tensor tensor = Tensor::Ones({5000});
  const TensorSpec spec = SpecOf(tensor);
  wire::SharedMemoryTicket good;
  ASSERT_TRUE(good.ParseFromString(Export(tensor).ticket));
  const auto refused =
      [&](const std::function<void(wire::SharedMemoryTicket&)>& alter) {
        wire::SharedMemoryTicket ticket = good;
        alter(ticket);
        return bob_.channel->Import(spec, ticket.SerializeAsString())
            .status()
            .code();
      };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refused([](auto& t) { t.set_segment(99); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_segment(0); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(64 << 10); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset((64 << 10) - 64); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(~uint64_t{63}); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_offset(1); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_bytes(t.bytes() + 1); }), kInvalid);
  EXPECT_EQ(refused([](auto& t) { t.set_bytes(~uint64_t{0}); }), kInvalid);
  EXPECT_EQ(bob_.channel->Import(spec, "\xff\xff").status().code(), kInvalid);
  const auto got = bob_.channel->Import(spec, good.SerializeAsString());
  EXPECT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(refused([](auto&) {}), kInvalid) << "the same lease twice";
}

TEST_F(SharedMemoryTest, LeasesThatAreNotOutAreNotTakenBack) {
  Open();
  EXPECT_FALSE(alice_.channel->OnReleased(5).ok());
  const Ticket ticket = Export(Tensor::Ones({5000}));
  EXPECT_TRUE(alice_.channel->OnReleased(ticket.lease).ok());
  EXPECT_FALSE(alice_.channel->OnReleased(ticket.lease).ok());
}

TEST_F(SharedMemoryTest, OtherMachinesAndUsersHaveNone) {
  const std::string ours = *alice_.kind->Offer();
  wire::SharedMemoryOffer theirs;
  ASSERT_TRUE(theirs.ParseFromString(*bob_.kind->Offer()));
  const auto why = [&](const std::string& offer) {
    return std::string(
        alice_.kind->Open({true, ours, offer}, alice_.port).status().message());
  };
  wire::SharedMemoryOffer other = theirs;
  other.set_boot_id("another");
  EXPECT_EQ(why(other.SerializeAsString()), "it is on another machine");
  other = theirs;
  other.set_user(theirs.user() + 1);
  EXPECT_EQ(why(other.SerializeAsString()), "it belongs to another user");
  EXPECT_EQ(why("\xff\xff"), "its offer does not parse");
}

// As between containers that share a kernel and no file system.
TEST_F(SharedMemoryTest, ASocketThatIsNotThereIsAReason) {
  ConnectWith([](auto& offer) { offer.set_socket("/nowhere/f"); });
  EXPECT_THAT(alice_.port->AwaitSettled(),
              HasSubstr("cannot connect to its socket"));
  EXPECT_EQ(bob_.port->AwaitSettled(), "nobody connected to the socket");
  EXPECT_FALSE(alice_.channel->Export(Tensor::Ones({5000})).has_value());
}

TEST_F(SharedMemoryTest, AWrongKeyIsAReason) {
  ConnectWith([](auto& offer) { offer.set_key("guessed"); });
  EXPECT_EQ(bob_.port->AwaitSettled(), "nobody connected to the socket");
  EXPECT_EQ(alice_.port->AwaitSettled(), "nobody connected to the socket");
}

TEST_F(SharedMemoryTest, WordsThatMakeNoSenseEndIt) {
  const std::string ours = *alice_.kind->Offer();
  alice_.channel = *alice_.kind->Open({false, ours, ours}, alice_.port);
  alice_.channel->OnControl("\xff\xff");
  EXPECT_EQ(alice_.port->AwaitSettled(), "it says what makes no sense");
}

// Of sizes, not of descriptors: UBSan asks the kernel about memory by a pipe,
// and takes it for broken without one.
TEST_F(SharedMemoryTest, ALimitOfSizesStopsGrowthAndNothingElse) {
  Open();
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit low = {1 << 16, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const Tensor large = Tensor::Ones({1 << 20});
  EXPECT_FALSE(alice_.channel->Export(large).has_value());
  const Tensor small = Send(Tensor::Ones({5000}));
  EXPECT_EQ(small.Slice(0, 0, 1).Item(), 1);
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (alice_.channel->info().why_not.empty() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, former);
  EXPECT_THAT(alice_.channel->info().why_not, HasSubstr("File too large"));
  EXPECT_EQ(Send(large).Slice(0, 0, 1).Item(), 1);
  EXPECT_EQ(alice_.channel->info().why_not, "");
}

TEST(Segment, IsTakenOnlySealedAndOfItsSize) {
  constexpr size_t kBytes = 1 << 16;
  Fd plain(memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(plain.get(), kBytes), 0);
  EXPECT_EQ(Segment::Open(std::move(plain), kBytes).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Segment::Open(Fd(open("/dev/zero", O_RDWR)), kBytes).ok());
  const auto segment = Segment::Create(kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_FALSE(Segment::Open(Fd(dup(segment->fd().get())), kBytes + 4096).ok());
  EXPECT_NE(ftruncate(segment->fd().get(), 0), 0);
  const auto again = Segment::Open(Fd(dup(segment->fd().get())), kBytes);
  ASSERT_TRUE(again.ok()) << again.status();
  std::memset(segment->data(), 5, kBytes);
  EXPECT_EQ(again->data()[kBytes - 1], std::byte{5});
}

}  // namespace
}  // namespace baton::rpc
