// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "core/status.h"
#include "rpc/transports/rings.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace baton::fuzz {
namespace {

constexpr size_t kMaxMessageBytes = size_t{1} << 20;
constexpr size_t kHeadBytes = 4096;
constexpr size_t kAll = std::numeric_limits<size_t>::max();

// The ring from a process to this one, and the memory of both.
struct Ring {
  Ring() {
    auto made = rpc::RingWriter::Make();
    BATON_CHECK(made.ok());
    writer = *std::move(made);
    memory = static_cast<char*>(mmap(nullptr, kHeadBytes + rpc::kRingBytes,
                                     PROT_READ | PROT_WRITE, MAP_SHARED,
                                     writer->fd().get(), 0));
    BATON_CHECK(memory != MAP_FAILED);
    auto wakeup = rpc::FutexEvent::Make();
    BATON_CHECK(wakeup.ok());
    auto reader = rpc::RingReader::Open(rpc::Fd(dup(writer->fd().get())));
    BATON_CHECK(reader.ok());
    receiver = std::make_unique<rpc::RingReceiver>(
        rpc::RingEndIn{*std::move(reader), *std::move(wakeup)}, nullptr,
        kMaxMessageBytes, [](rpc::RingReceiver&) {});
  }
  ~Ring() { munmap(memory, kHeadBytes + rpc::kRingBytes); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // False where the writer finds that the memory was spoilt.
  bool Write(const std::string& bytes) {
    const bool fine = writer->Write(bytes).ok();
    writer->Publish();
    return fine;
  }
  // False where a link would break.
  bool Read() {
    rpc::Receiver::Batch batch;
    MutexLock lock(receiver->reading());
    const absl::Status status = receiver->Read(Device::Cpu(), kAll, batch);
    size_t bytes = 0;
    for (const rpc::Message& message : batch.messages) {
      bytes += rpc::BytesOf(message);
    }
    BATON_CHECK(!status.ok() || bytes == batch.bytes);
    return status.ok();
  }

  std::unique_ptr<rpc::RingWriter> writer;
  std::unique_ptr<rpc::RingReceiver> receiver;
  char* memory;
};

std::string Framed(const std::string& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) +
         frame;
}

}  // namespace

// What a process writes that may keep to the rules or not.
bool MessageRing(const std::string& bytes) {
  Input input(bytes);
  Ring ring;
  for (int steps = 0; !input.empty() && steps < 200; ++steps) {
    switch (input.Byte() % 4) {
      case 0:
        if (!ring.Write(Framed(input.Chunk()))) return false;
        break;
      case 1:
        if (!ring.Write(input.Chunk())) return false;
        break;
      case 2: {
        // Positions, flags, and bytes that were written already.
        const size_t at = size_t{input.Byte()} * 32;
        const std::string piece = input.Chunk().substr(0, kHeadBytes);
        std::memcpy(ring.memory + at, piece.data(), piece.size());
        break;
      }
      default:
        if (!ring.Read()) return false;
    }
  }
  return true;
}

}  // namespace baton::fuzz
