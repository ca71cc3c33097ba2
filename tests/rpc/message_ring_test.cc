// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/message_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rpc/channels/futex_event.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/rings.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using baton::testing::Fails;
using baton::testing::IsOk;

// Both ends, and the memory as a process that keeps to no rules sees it.
struct Ring {
  Ring() {
    writer = *RingWriter::Make();
    reader = *RingReader::Open(Fd(dup(writer->fd().get())));
    memory = static_cast<uint64_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, writer->fd().get(), 0));
  }
  ~Ring() { munmap(memory, 4096); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  uint64_t& written() { return memory[0]; }
  uint64_t& read() { return memory[16]; }
  size_t Write(std::string_view bytes) {
    const auto count = writer->Write(bytes);
    EXPECT_THAT(count, IsOk());
    writer->Publish();
    return count.value_or(0);
  }
  std::string Read() {
    std::string bytes;
    EXPECT_THAT(reader->Read(bytes), IsOk());
    return bytes;
  }

  std::unique_ptr<RingWriter> writer;
  std::unique_ptr<RingReader> reader;
  uint64_t* memory;
};

TEST(MessageRing, GivesBackWhatWasWrittenHoweverItWraps) {
  Ring ring;
  std::mt19937 random(1);
  std::string expected, got;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 5000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    expected += bytes.substr(0, ring.Write(bytes));
    if (random() % 3 == 0) got += ring.Read();
  }
  got += ring.Read();
  EXPECT_GT(got.size(), 10 * kRingBytes);
  EXPECT_TRUE(got == expected);
}

TEST(MessageRing, TakesNoMoreThanItHoldsAndTellsOnceOfRoom) {
  Ring ring;
  EXPECT_EQ(ring.Write(std::string(kRingBytes + 10, 'x')), kRingBytes);
  EXPECT_EQ(ring.Write("y"), 0u);
  EXPECT_FALSE(ring.reader->WriterWaits());
  ring.writer->AwaitRoom();
  EXPECT_EQ(*ring.writer->Room(), 0u);
  EXPECT_EQ(ring.Read(), std::string(kRingBytes, 'x'));
  EXPECT_TRUE(ring.reader->WriterWaits());
  EXPECT_FALSE(ring.reader->WriterWaits());
  EXPECT_EQ(*ring.writer->Room(), kRingBytes);
  EXPECT_EQ(ring.Write("y"), 1u);
  EXPECT_EQ(ring.Read(), "y");
}

// As a writer leaves it that is killed while it writes.
TEST(MessageRing, WhatIsNotPublishedIsNotRead) {
  Ring ring;
  ring.Write("whole");
  ASSERT_THAT(ring.writer->Write("hal"), IsOk());
  EXPECT_TRUE(ring.reader->HasBytes());
  EXPECT_EQ(ring.Read(), "whole");
  EXPECT_FALSE(ring.reader->HasBytes());
}

TEST(MessageRing, BelievesNoPositionThatCannotBe) {
  for (const uint64_t garbage :
       {uint64_t{kRingBytes} + 1, uint64_t{1} << 40, uint64_t{1} << 63}) {
    Ring ring;
    ring.written() = garbage;
    std::string bytes;
    EXPECT_THAT(ring.reader->Read(bytes),
                Fails(absl::StatusCode::kDataLoss, "positions"));
    EXPECT_TRUE(bytes.empty());
    ring.read() = garbage;
    EXPECT_THAT(ring.writer->Write("x"),
                Fails(absl::StatusCode::kDataLoss, "positions"));
    EXPECT_FALSE(ring.writer->Room().ok());
  }
}

TEST(MessageRing, IsMadeOfNothingElse) {
  EXPECT_FALSE(
      RingReader::Open(Fd(open("/dev/null", O_RDWR | O_CLOEXEC))).ok());
  EXPECT_FALSE(RingReader::Open(Fd()).ok());
  const auto segment = Segment::Create(kRingBytes);
  ASSERT_THAT(segment, IsOk());
  EXPECT_FALSE(RingReader::Open(Fd(dup(segment->fd().get()))).ok());
  EXPECT_FALSE(FutexEvent::Open(Fd(dup(segment->fd().get()))).ok());
  Fd loose(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(loose.get(), 4096 + kRingBytes), 0);
  EXPECT_FALSE(RingReader::Open(std::move(loose)).ok());
}

// Two threads with a wakeup each way, both of which sleep whenever they can.
TEST(MessageRing, TwoThreadsMoveManyTimesWhatItHolds) {
  Ring ring;
  const auto there = *FutexEvent::Make();
  const auto here = *FutexEvent::Make();
  const auto await = [](FutexEvent& wakeup, const auto& ready) {
    while (!ready()) {
      wakeup.FallAsleep();
      const uint32_t asleep = wakeup.value();
      if (!ready()) wakeup.Sleep(asleep);
      wakeup.WakeUp();
    }
  };
  constexpr size_t kBytes = 40 * kRingBytes;
  std::thread reader([&] {
    std::string got;
    while (got.size() < kBytes) {
      await(*there, [&] { return ring.reader->HasBytes(); });
      ASSERT_THAT(ring.reader->Read(got), IsOk());
      if (ring.reader->WriterWaits()) here->Wake();
    }
    for (size_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(got[i], static_cast<char>(i % 251));
    }
  });
  std::string bytes(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<char>(i % 251);
  for (size_t done = 0; done < kBytes;) {
    const size_t piece = std::min<size_t>(997, kBytes - done);
    const size_t count =
        *ring.writer->Write(std::string_view(bytes).substr(done, piece));
    ring.writer->Publish();
    there->Wake();
    done += count;
    if (count > 0) continue;
    ring.writer->AwaitRoom();
    await(*here, [&] { return *ring.writer->Room() > 0; });
  }
  reader.join();
}

TEST(FutexEvent, IsHeardByWhoSleepsAndCostsWhoIsAwakeNothing) {
  const auto own = *FutexEvent::Make();
  const auto theirs = *FutexEvent::Open(Fd(dup(own->fd().get())));
  const uint32_t awake = own->value();
  theirs->Wake();
  EXPECT_EQ(own->value(), awake);
  own->FallAsleep();
  EXPECT_TRUE(FutexEvent::Asleep(own->value()));
  std::thread sleeper([&own, asleep = own->value()] {
    while (own->value() == asleep) own->Sleep(asleep);
  });
  theirs->Wake();
  sleeper.join();
  EXPECT_FALSE(FutexEvent::Asleep(own->value()));
}

std::unique_ptr<RingReceiver> ReceiverOf(Ring& ring) {
  return std::make_unique<RingReceiver>(
      RingEndIn{std::move(ring.reader), *FutexEvent::Make()}, nullptr,
      size_t{1} << 20, [](RingReceiver&) {});
}

TEST(RingReceiver, CutsFramesOutOfWhateverPiecesCome) {
  std::vector<std::string> metas;
  std::string all;
  for (const size_t size : {0, 280, 1, 4980}) {
    metas.emplace_back(size, static_cast<char>('a' + size % 26));
    const std::string frame = MetaBytes(FrameKind::kChannel, metas.back());
    const auto length = static_cast<uint32_t>(frame.size());
    all.append(reinterpret_cast<const char*>(&length), sizeof(length));
    all += frame;
  }
  for (const size_t piece : {1, 3, 24, 100, 6000}) {
    Ring ring;
    const auto receiver = ReceiverOf(ring);
    std::vector<std::string> got;
    for (size_t at = 0; at < all.size(); at += piece) {
      ring.Write(std::string_view(all).substr(at, piece));
      Receiver::Batch batch;
      MutexLock lock(receiver->reading());
      ASSERT_THAT(receiver->Read(Device::Cpu(), SIZE_MAX, batch), IsOk());
      for (const auto& control : batch.controls) got.push_back(control.meta);
    }
    EXPECT_EQ(got, metas) << piece;
  }
}

TEST(RingReceiver, RefusesALengthThatNoFrameHas) {
  for (const uint32_t length : {0u, 19u, (4u << 20) + 1, UINT32_MAX}) {
    Ring ring;
    const auto receiver = ReceiverOf(ring);
    ring.Write({reinterpret_cast<const char*>(&length), sizeof(length)});
    Receiver::Batch batch;
    MutexLock lock(receiver->reading());
    EXPECT_THAT(receiver->Read(Device::Cpu(), SIZE_MAX, batch),
                Fails(absl::StatusCode::kInvalidArgument, "in a ring"));
  }
}

}  // namespace
}  // namespace baton::rpc
