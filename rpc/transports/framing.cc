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

std::string MetaBytes(FrameKind kind, const std::string& meta) {
  std::string bytes;
  AppendFrameHeader({kind, static_cast<uint32_t>(meta.size()), 0}, bytes);
  bytes += meta;
  return bytes;
}

grpc::Slice MetaSlice(FrameKind kind, const std::string& meta) {
  return grpc::Slice(MetaBytes(kind, meta));
}

grpc::ByteBuffer MetaFrame(FrameKind kind, const std::string& meta) {
  const grpc::Slice slice = MetaSlice(kind, meta);
  return grpc::ByteBuffer(&slice, 1);
}

FrameReader::FrameReader(const grpc::ByteBuffer& buffer) {
  if (!buffer.Valid() || !buffer.Dump(&slices_).ok()) slices_.clear();
  for (const grpc::Slice& slice : slices_) remaining_ += slice.size();
}

FrameReader::FrameReader(std::string_view bytes)
    : piece_(bytes), remaining_(bytes.size()) {}

bool FrameReader::Read(void* out, size_t bytes) {
  if (bytes > remaining_) return false;
  remaining_ -= bytes;
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    if (piece_.empty()) {
      const grpc::Slice& slice = slices_[slice_++];
      piece_ = {reinterpret_cast<const char*>(slice.begin()), slice.size()};
    }
    const size_t part = std::min(bytes, piece_.size());
    if (part > 0) std::memcpy(to, piece_.data(), part);
    to += part;
    bytes -= part;
    piece_.remove_prefix(part);
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
  constexpr auto kLast = static_cast<uint8_t>(FrameKind::kResume);
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
