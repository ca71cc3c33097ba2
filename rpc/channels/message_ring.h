// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// A stream of bytes from one process to another through memory that both write:
// the bytes, and how far each of the two is. Neither believes the other: a
// position that cannot be is DataLoss, and what is read was copied out before
// anybody looks at it.
namespace baton::rpc {

inline constexpr size_t kRingBytes = size_t{64} << 10;

struct RingPositions;

// The end that writes. Thread-compatible.
class RingWriter {
 public:
  // With memory of its own, to be handed to who shall read.
  static absl::StatusOr<std::unique_ptr<RingWriter>> Make();
  const Fd& fd() const { return memory_.fd(); }
  void CloseFd() { memory_.CloseFd(); }

  // Copies as many of the bytes as there is room for; how many.
  absl::StatusOr<size_t> Write(std::string_view bytes);
  // What was written may be read from now on.
  void Publish();
  // From the next bytes that are read on there is room; the reader is to say so
  // once (RingReader::WriterWaits). Ask for room again after this.
  void AwaitRoom();
  // May be asked beside the rest.
  absl::StatusOr<size_t> Room() const;

 private:
  explicit RingWriter(Segment memory);

  Segment memory_;
  RingPositions& positions_;
  // In all; some of it not published yet.
  std::atomic<uint64_t> written_{0};
};

// The end that reads. Thread-compatible; HasBytes may be asked beside Read.
class RingReader {
 public:
  // InvalidArgument for what no RingWriter gives.
  static absl::StatusOr<std::unique_ptr<RingReader>> Open(Fd fd);

  bool HasBytes() const;
  // Appends all that was published, and makes room of it.
  absl::Status Read(std::string& out);
  // Whether the writer waits for the room that Read has made; once.
  bool WriterWaits();

 private:
  explicit RingReader(Segment memory);

  const Segment memory_;
  RingPositions& positions_;
  std::atomic<uint64_t> read_{0};  // in all
};

}  // namespace baton::rpc
