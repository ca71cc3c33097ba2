// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/framing.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace baton::rpc {
namespace {

constexpr char kMagic[4] = {'B', 'T', 'N', '1'};

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

template <typename T>
T LittleEndian(const uint8_t* bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= T{bytes[i]} << (8 * i);
  return value;
}

}  // namespace

void AppendFrameHeader(const FrameHeader& header, std::string& out) {
  out.append(kMagic, sizeof(kMagic));
  out.push_back(static_cast<char>(header.kind));
  out.append(3, '\0');
  AppendLittleEndian(header.meta_bytes, out);
  AppendLittleEndian(header.payload_bytes, out);
}

grpc::Slice MetaSlice(FrameKind kind, const std::string& meta) {
  std::string bytes;
  AppendFrameHeader({kind, static_cast<uint32_t>(meta.size()), 0}, bytes);
  bytes += meta;
  return grpc::Slice(bytes);
}

grpc::ByteBuffer MetaFrame(FrameKind kind, const std::string& meta) {
  const grpc::Slice slice = MetaSlice(kind, meta);
  return grpc::ByteBuffer(&slice, 1);
}

FrameReader::FrameReader(const grpc::ByteBuffer& buffer) {
  if (!buffer.Valid() || !buffer.Dump(&slices_).ok()) slices_.clear();
  for (const grpc::Slice& slice : slices_) remaining_ += slice.size();
}

bool FrameReader::Read(void* out, size_t bytes) {
  if (bytes > remaining_) return false;
  remaining_ -= bytes;
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const size_t part = std::min(bytes, slice.size() - offset_);
    if (part > 0) std::memcpy(to, slice.begin() + offset_, part);
    to += part;
    bytes -= part;
    offset_ += part;
    if (offset_ == slice.size()) {
      ++slice_;
      offset_ = 0;
    }
  }
  return true;
}

absl::StatusOr<FrameHeader> FrameReader::ReadHeader() {
  uint8_t bytes[kFrameHeaderBytes];
  if (!Read(bytes, sizeof(bytes))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of ", remaining_, " bytes is too short for its header"));
  }
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame begins with \"",
        absl::CHexEscape(std::string(reinterpret_cast<char*>(bytes), 4)),
        "\", not BTN1"));
  }
  FrameHeader header{static_cast<FrameKind>(bytes[4]),
                     LittleEndian<uint32_t>(bytes + 8),
                     LittleEndian<uint64_t>(bytes + 12)};
  constexpr auto kLast = static_cast<uint8_t>(FrameKind::kChannel);
  if (bytes[4] < 1 || bytes[4] > kLast || bytes[5] != 0 || bytes[6] != 0 ||
      bytes[7] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame has the unknown kind ", bytes[4]));
  }
  if (header.meta_bytes > kMaxMetaBytes || header.meta_bytes > remaining_ ||
      header.payload_bytes > remaining_ - header.meta_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame announces ", header.meta_bytes, " + ", header.payload_bytes,
        " bytes, ", remaining_, " are there"));
  }
  return header;
}

}  // namespace baton::rpc
