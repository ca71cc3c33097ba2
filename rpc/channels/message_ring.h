// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/futex_event.h"
#include "rpc/channels/segment.h"

// A stream of bytes from one process to another through memory that both can
// write: the bytes, and the positions of the reader and the writer. Neither end
// trusts the other: an impossible position is DataLoss, and bytes are copied
// out before they are parsed.
namespace baton::rpc {

inline constexpr size_t kRingBytes = size_t{64} << 10;

struct RingPositions;

// The writing end. Thread-compatible.
class RingWriter {
 public:
  // Makes the ring's memory, to be passed to the reader.
  static absl::StatusOr<std::unique_ptr<RingWriter>> Make();
  const Fd& fd() const { return memory_.fd(); }
  void CloseFd() { memory_.CloseFd(); }

  // Copies as many of the bytes as there is room for, and returns their number.
  absl::StatusOr<size_t> Write(std::string_view bytes);
  // Lets the reader see what was written.
  void Publish();
  // From now on the reader must report once (RingReader::WriterWaits) when it
  // has made room. The caller must check Room again after this call.
  void AwaitRoom();
  // May run concurrently with the other methods.
  absl::StatusOr<size_t> Room() const;

 private:
  explicit RingWriter(Segment memory);

  Segment memory_;
  RingPositions& positions_;
  std::byte* const ring_;  // its bytes
  // The bytes written in all, some of which may not be published yet.
  std::atomic<uint64_t> written_{0};
};

// The reading end. Thread-compatible; HasBytes may run concurrently with Read.
class RingReader {
 public:
  // InvalidArgument unless the memory is a RingWriter's.
  static absl::StatusOr<std::unique_ptr<RingReader>> Open(Fd fd);

  bool HasBytes() const;
  // Appends all that was published, and frees its room.
  absl::Status Read(std::string& out);
  // Returns true, once, if the writer waits for the room that Read has made.
  bool WriterWaits();

 private:
  explicit RingReader(Segment memory);

  const Segment memory_;
  RingPositions& positions_;
  const std::byte* const ring_;    // its bytes
  std::atomic<uint64_t> read_{0};  // in all
};

// This process's ends of the rings of a connection, each with the waker of the
// peer, to be called when there are bytes to read or room to write.
struct RingEndIn {
  std::unique_ptr<RingReader> ring;
  std::shared_ptr<FutexEvent> wakeup;
};
struct RingEndOut {
  std::unique_ptr<RingWriter> ring;
  std::shared_ptr<FutexEvent> wakeup;
};

}  // namespace baton::rpc
