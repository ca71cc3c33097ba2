// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// The frames of rpc/wire.proto.
namespace baton::rpc {

enum class FrameKind : uint8_t {
  kHello = 1,
  kHelloAnswer = 2,
  kMessage = 3,
  kChunk = 4,
  kGoodbye = 5,
  kBeat = 6,
  kChannel = 7,
  kRing = 8,
  kChallenge = 9,
  kProof = 10,
  kPause = 11,
  kResume = 12,
};

inline constexpr size_t kFrameHeaderBytes = 20;
// The most payload bytes of one gRPC message, without headers.
inline constexpr size_t kChunkBytes = size_t{1} << 20;
inline constexpr size_t kMaxMetaBytes = size_t{1} << 20;
inline constexpr size_t kMaxGrpcMessageBytes = size_t{4} << 20;
// The most tensors of one message. A tensor takes a hundred times as much
// memory at the receiver as the few bytes that it may take on the wire.
inline constexpr size_t kMaxTensors = 100'000;
// Tensors up to this size, and together up to kInlineTotalBytes, travel in the
// message frame.
inline constexpr size_t kInlineTensorBytes = size_t{16} << 10;
inline constexpr size_t kInlineTotalBytes = size_t{64} << 10;

struct FrameHeader {
  FrameKind kind;
  uint32_t meta_bytes;
  uint64_t payload_bytes;
};

void AppendFrameHeader(const FrameHeader& header, std::string& out);
// Return a whole frame without payload.
std::string MetaBytes(FrameKind kind, const std::string& meta);
grpc::Slice MetaSlice(FrameKind kind, const std::string& meta);
grpc::ByteBuffer MetaFrame(FrameKind kind, const std::string& meta);

// Reads frames from front to back, either from a gRPC message, whose slices it
// does not join, or from bytes that must not move meanwhile. Thread-compatible.
class FrameReader {
 public:
  explicit FrameReader(const grpc::ByteBuffer& buffer);
  explicit FrameReader(std::string_view bytes);

  size_t remaining() const { return remaining_; }
  // Returns InvalidArgument if the bytes are not a header or announce more than
  // is there.
  absl::StatusOr<FrameHeader> ReadHeader();
  // Returns false and reads nothing if fewer bytes are left.
  bool Read(void* out, size_t bytes);

 private:
  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;        // the next one
  std::string_view piece_;  // the unread part of the present one
  size_t remaining_ = 0;
};

}  // namespace baton::rpc
