// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/message_ring.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/status.h"

namespace baton::rpc {

// At the beginning of the memory. Members that different processes write are on
// different cache lines, so that neither slows the other one down.
struct RingPositions {
  alignas(128) std::atomic<uint64_t> written{0};
  alignas(128) std::atomic<uint64_t> read{0};
  alignas(128) std::atomic<uint32_t> writer_waits{0};
};

namespace {

constexpr size_t kHeadBytes = 4096;
constexpr size_t kMemoryBytes = kHeadBytes + kRingBytes;
static_assert((kRingBytes & (kRingBytes - 1)) == 0);
static_assert(sizeof(RingPositions) <= kHeadBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

RingPositions& PositionsIn(const Segment& memory) {
  return *std::launder(reinterpret_cast<RingPositions*>(memory.data()));
}

// How many of the bytes from an offset lie before the end of the ring.
size_t BeforeEnd(size_t offset, size_t bytes) {
  return std::min(bytes, kRingBytes - offset);
}

absl::Status Impossible() {
  return absl::DataLossError("the positions in a ring make no sense");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingWriter>> RingWriter::Make() {
  ASSIGN_OR_RETURN(Segment memory, Segment::Create(kMemoryBytes));
  new (memory.data()) RingPositions();
  return std::unique_ptr<RingWriter>(new RingWriter(std::move(memory)));
}

RingWriter::RingWriter(Segment memory)
    : memory_(std::move(memory)),
      positions_(PositionsIn(memory_)),
      ring_(memory_.data() + kHeadBytes) {}

absl::StatusOr<size_t> RingWriter::Room() const {
  const uint64_t used = written_.load(std::memory_order_relaxed) -
                        positions_.read.load(std::memory_order_seq_cst);
  if (used > kRingBytes) return Impossible();
  return kRingBytes - static_cast<size_t>(used);
}

absl::StatusOr<size_t> RingWriter::Write(std::string_view bytes) {
  ASSIGN_OR_RETURN(const size_t room, Room());
  const size_t count = std::min(room, bytes.size());
  const uint64_t written = written_.load(std::memory_order_relaxed);
  for (size_t done = 0; done < count;) {
    const size_t at = (written + done) % kRingBytes;
    const size_t part = BeforeEnd(at, count - done);
    std::memcpy(ring_ + at, bytes.data() + done, part);
    done += part;
  }
  written_.store(written + count, std::memory_order_relaxed);
  return count;
}

void RingWriter::Publish() {
  positions_.written.store(written_.load(std::memory_order_relaxed),
                           std::memory_order_seq_cst);
}

void RingWriter::AwaitRoom() {
  positions_.writer_waits.store(1, std::memory_order_seq_cst);
}

absl::StatusOr<std::unique_ptr<RingReader>> RingReader::Open(Fd fd) {
  ASSIGN_OR_RETURN(Segment memory, Segment::Open(std::move(fd), kMemoryBytes));
  return std::unique_ptr<RingReader>(new RingReader(std::move(memory)));
}

RingReader::RingReader(Segment memory)
    : memory_(std::move(memory)),
      positions_(PositionsIn(memory_)),
      ring_(memory_.data() + kHeadBytes) {}

bool RingReader::HasBytes() const {
  return positions_.written.load(std::memory_order_seq_cst) !=
         read_.load(std::memory_order_relaxed);
}

absl::Status RingReader::Read(std::string& out) {
  uint64_t read = read_.load(std::memory_order_relaxed);
  const uint64_t there =
      positions_.written.load(std::memory_order_acquire) - read;
  if (there > kRingBytes) return Impossible();
  for (auto left = static_cast<size_t>(there); left > 0;) {
    const size_t at = read % kRingBytes;
    const size_t part = BeforeEnd(at, left);
    out.append(reinterpret_cast<const char*>(ring_ + at), part);
    read += part;
    left -= part;
  }
  read_.store(read, std::memory_order_relaxed);
  positions_.read.store(read, std::memory_order_seq_cst);
  return absl::OkStatus();
}

bool RingReader::WriterWaits() {
  return positions_.writer_waits.load(std::memory_order_seq_cst) != 0 &&
         positions_.writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace baton::rpc
