// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/transports/packed.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

constexpr int kMaxRank = 32;

absl::Status TooLarge(uint64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a message above the ", limit,
                   " bytes that are allowed (--max_message_bytes)"));
}

// The bytes of a tensor, at most `limit`, in a message of `whole` bytes.
absl::StatusOr<uint64_t> TensorBytes(const wire::TensorMeta& meta, DType dtype,
                                     uint64_t limit, uint64_t whole) {
  if (meta.sizes_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", meta.sizes_size(), " dimensions"));
  }
  uint64_t bytes = SizeOf(dtype);
  bool empty = false;
  for (int64_t size : meta.sizes()) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor with the extent ", size));
    }
    // An extent of 0 makes no other extent harmless: numel() multiplies them.
    const uint64_t extent = std::max<uint64_t>(1, static_cast<uint64_t>(size));
    empty |= size == 0;
    if (bytes > limit / extent) return TooLarge(whole);
    bytes *= extent;
  }
  return empty ? 0 : bytes;
}

absl::StatusOr<DType> DTypeOf(const wire::TensorMeta& meta) {
  const auto dtype = meta.dtype() > 255
                         ? std::nullopt
                         : DTypeFromWire(static_cast<int>(meta.dtype()));
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of the unknown dtype ", meta.dtype()));
  }
  if (meta.channels_last() && meta.sizes_size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a channels-last tensor of ", meta.sizes_size(), " dimensions"));
  }
  return *dtype;
}

}  // namespace

bool Receiver::Batch::Has(FrameKind kind) const {
  return std::any_of(
      controls.begin(), controls.end(),
      [kind](const Control& control) { return control.kind == kind; });
}

absl::Status Receiver::Consume(const grpc::ByteBuffer& buffer,
                               TensorChannels* channels, Batch& batch,
                               Device device) {
  return Consume(FrameReader(buffer), channels, batch, device);
}

absl::Status Receiver::Consume(FrameReader in, TensorChannels* channels,
                               Batch& batch, Device device) {
  device_ = device;
  if (in.remaining() == 0) {
    return absl::InvalidArgumentError("an empty gRPC message");
  }
  while (in.remaining() > 0) {
    ASSIGN_OR_RETURN(FrameHeader header, in.ReadHeader());
    if (header.kind == FrameKind::kMessage) {
      RETURN_IF_ERROR(ReadMessage(header, in, channels, batch));
    } else if (header.kind == FrameKind::kChunk) {
      RETURN_IF_ERROR(ReadChunk(header, in, batch));
    } else {
      RETURN_IF_ERROR(ReadControl(header, in, batch));
    }
  }
  return absl::OkStatus();
}

absl::Status Receiver::ConsumeControls(const grpc::ByteBuffer& buffer,
                                       Batch& batch) {
  FrameReader in(buffer);
  while (in.remaining() > 0) {
    ASSIGN_OR_RETURN(FrameHeader header, in.ReadHeader());
    if (header.kind == FrameKind::kMessage ||
        header.kind == FrameKind::kChunk) {
      return absl::InvalidArgumentError("a message before the hello");
    }
    RETURN_IF_ERROR(ReadControl(header, in, batch));
  }
  return absl::OkStatus();
}

absl::Status Receiver::ReadControl(const FrameHeader& header, FrameReader& in,
                                   Batch& batch) {
  if (header.payload_bytes > 0) {
    return absl::InvalidArgumentError("a control frame with a payload");
  }
  Control control{header.kind, std::string(header.meta_bytes, '\0')};
  in.Read(control.meta.data(), control.meta.size());
  batch.controls.push_back(std::move(control));
  return absl::OkStatus();
}

absl::Status Receiver::ReadMessage(const FrameHeader& header,
                                   FrameReader& frames,
                                   TensorChannels* channels, Batch& batch) {
  std::string bytes(header.meta_bytes, '\0');
  wire::MessageMeta meta;
  if (!frames.Read(bytes.data(), bytes.size()) ||
      !meta.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("a message whose meta does not parse");
  }
  const int tensors =
      meta.tensors_size() - (meta.header_is_last_tensor() ? 1 : 0);
  if (tensors < 0 || static_cast<size_t>(tensors) > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", tensors, " tensors"));
  }
  Incoming& in = small_;
  in.message.emplace();
  in.message->tensors.resize(static_cast<size_t>(meta.tensors_size()));
  std::vector<Part> inline_parts;
  RETURN_IF_ERROR(Plan(in, meta, channels, inline_parts));
  uint64_t inline_bytes = 0;
  for (const Part& part : inline_parts) inline_bytes += part.bytes;
  if (inline_bytes != header.payload_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message with ", header.payload_bytes,
                     " bytes of inline parts, not ", inline_bytes));
  }
  for (const Part& part : inline_parts) {
    if (part.tensor >= 0) RETURN_IF_ERROR(Allocate(in, part.tensor));
    RETURN_IF_ERROR(Append(in, part, part.bytes, frames));
    RETURN_IF_ERROR(Settle(in, part.tensor));
  }
  if (in.parts.empty()) {
    Finish(in, batch);
    return absl::OkStatus();
  }
  if (large_.message.has_value()) {
    return absl::InvalidArgumentError(
        "a message in chunks amid the chunks of another");
  }
  std::swap(small_, large_);
  return absl::OkStatus();
}

absl::Status Receiver::Plan(Incoming& in, const wire::MessageMeta& meta,
                            TensorChannels* channels,
                            std::vector<Part>& inline_parts) {
  in.specs.clear();
  in.for_gpu.clear();
  in.parts.clear();
  in.awaited.clear();
  in.imported_bytes = 0;
  in.part = 0;
  in.offset = 0;
  in.header_is_last_tensor = meta.header_is_last_tensor();
  if (meta.header_size() > max_bytes_) return TooLarge(max_bytes_);
  uint64_t total = meta.header_size();
  inline_parts.push_back({-1, total});
  for (int i = 0; i < meta.tensors_size(); ++i) {
    const wire::TensorMeta& entry = meta.tensors(i);
    ASSIGN_OR_RETURN(const DType dtype, DTypeOf(entry));
    ASSIGN_OR_RETURN(uint64_t size,
                     TensorBytes(entry, dtype, max_bytes_ - total, max_bytes_));
    total += size;
    in.for_gpu.push_back(entry.gpu() && device_.is_cuda());
    in.specs.push_back({dtype,
                        Shape(Dims(entry.sizes().begin(), entry.sizes().end())),
                        entry.channels_last() ? MemoryFormat::kChannelsLast
                                              : MemoryFormat::kContiguous,
                        size, in.for_gpu.back()});
    if (entry.channel() != 0) {
      RETURN_IF_ERROR(Import(in, entry, i, channels));
    } else if (entry.chunked() && size > 0) {
      in.parts.push_back({i, size});
    } else {
      inline_parts.push_back({i, size});
    }
  }
  in.bytes = total;
  if (in.header_is_last_tensor &&
      (in.specs.back().dtype != DType::kU8 || in.for_gpu.back())) {
    return absl::InvalidArgumentError("a header that is not of bytes");
  }
  return absl::OkStatus();
}

absl::Status Receiver::Import(Incoming& in, const wire::TensorMeta& entry,
                              int tensor, TensorChannels* channels) {
  if (channels == nullptr) {
    return absl::InvalidArgumentError("a tensor by a channel without any");
  }
  const auto index = static_cast<size_t>(tensor);
  ASSIGN_OR_RETURN(
      Imported imported,
      channels->Import(entry.channel(), in.specs[index], entry.ticket()));
  in.imported_bytes += in.specs[index].bytes;
  in.message->tensors[index] = imported.tensor;
  if (!imported.given.valid()) return Settle(in, tensor);
  return Await(in, tensor, imported);
}

// A tensor that has not arrived yet is settled when it has.
absl::Status Receiver::Await(Incoming& in, int tensor, const Imported& late) {
  Tensor& values = in.message->tensors[static_cast<size_t>(tensor)];
  if (values.device().is_cuda() || !in.for_gpu[static_cast<size_t>(tensor)]) {
    in.awaited.push_back(late.given);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CatchErrors([&] { values = MadeOnGpu(values, device_); }));
  in.awaited.push_back(late.given.Then(
      [from = late.tensor, to = values] { MoveToGpu(from, to); }));
  return absl::OkStatus();
}

absl::Status Receiver::ReadChunk(const FrameHeader& header, FrameReader& frames,
                                 Batch& batch) {
  Incoming& in = large_;
  if (!in.message.has_value() || header.meta_bytes != 0) {
    return absl::InvalidArgumentError("a chunk that belongs to no message");
  }
  const Part part = in.parts[in.part];
  if (header.payload_bytes == 0 ||
      header.payload_bytes > part.bytes - in.offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", header.payload_bytes, " bytes where ",
                     part.bytes - in.offset, " are missing"));
  }
  if (in.offset == 0 && part.tensor >= 0)
    RETURN_IF_ERROR(Allocate(in, part.tensor));
  RETURN_IF_ERROR(Append(in, part, header.payload_bytes, frames));
  in.offset += header.payload_bytes;
  if (in.offset < part.bytes) return absl::OkStatus();
  RETURN_IF_ERROR(Settle(in, part.tensor));
  in.offset = 0;
  if (++in.part == in.parts.size()) Finish(in, batch);
  return absl::OkStatus();
}

absl::Status Receiver::Allocate(Incoming& in, int tensor) {
  const auto index = static_cast<size_t>(tensor);
  const TensorSpec& spec = in.specs[index];
  return CatchErrors([&] {
    in.message->tensors[index] =
        Tensor::Empty(spec.shape, {.dtype = spec.dtype,
                                   .format = spec.format,
                                   .pinned = in.for_gpu[index]});
  });
}

absl::Status Receiver::Append(Incoming& in, const Part& part, size_t bytes,
                              FrameReader& frames) {
  if (bytes == 0) return absl::OkStatus();
  char* to;
  if (part.tensor < 0) {
    in.message->header.resize(bytes);
    to = in.message->header.data();
  } else {
    const Tensor& tensor =
        in.message->tensors[static_cast<size_t>(part.tensor)];
    to = static_cast<char*>(tensor.raw_data()) + in.offset;
  }
  if (!frames.Read(to, bytes)) {
    return absl::InvalidArgumentError("a frame ends early");
  }
  return absl::OkStatus();
}

absl::Status Receiver::Settle(Incoming& in, int tensor) {
  if (tensor < 0) return absl::OkStatus();
  const auto index = static_cast<size_t>(tensor);
  Tensor& values = in.message->tensors[index];
  if (values.device().is_cuda()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckElements(
      values.dtype(),
      {static_cast<const std::byte*>(values.raw_data()), values.nbytes()}));
  if (!in.for_gpu[index]) return absl::OkStatus();
  return CatchErrors([&] { values = OnGpu(values, device_); });
}

void Receiver::Finish(Incoming& in, Batch& batch) {
  batch.small = batch.small || in.parts.empty();
  if (in.awaited.empty()) {
    if (in.header_is_last_tensor) RestoreHeader(*in.message);
    batch.bytes += in.bytes;
    batch.messages.push_back(*std::move(in.message));
  } else {
    batch.late.push_back({.message = *std::move(in.message),
                          .awaited = std::exchange(in.awaited, {}),
                          .bytes = in.bytes,
                          .bytes_here = in.bytes - in.imported_bytes,
                          .small = in.parts.empty(),
                          .header_is_last_tensor = in.header_is_last_tensor});
  }
  in.message.reset();
}

}  // namespace baton::rpc
