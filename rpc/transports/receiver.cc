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
  Incoming in;
  RETURN_IF_ERROR(Plan(in, meta, channels));
  uint64_t inline_bytes = meta.header_size();
  for (const size_t tensor : in.inline_tensors)
    inline_bytes += in.specs[tensor].bytes;
  if (inline_bytes != header.payload_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message with ", header.payload_bytes,
                     " bytes of inline parts, not ", inline_bytes));
  }
  in.message.header.resize(meta.header_size());
  frames.Read(in.message.header.data(), in.message.header.size());
  for (const size_t tensor : in.inline_tensors) {
    RETURN_IF_ERROR(Allocate(in, tensor));
    RETURN_IF_ERROR(Append(in, tensor, in.specs[tensor].bytes, frames));
    RETURN_IF_ERROR(Settle(in, tensor));
  }
  if (in.chunked_tensors.empty()) return Finish(in, batch);
  if (!large_.chunked_tensors.empty()) {
    return absl::InvalidArgumentError(
        "a message in chunks amid the chunks of another");
  }
  large_ = std::move(in);
  return absl::OkStatus();
}

absl::Status Receiver::Plan(Incoming& in, const wire::MessageMeta& meta,
                            TensorChannels* channels) {
  in.message.tensors.resize(static_cast<size_t>(meta.tensors_size()));
  in.header_is_last_tensor = meta.header_is_last_tensor();
  if (meta.header_size() > max_bytes_) return TooLarge(max_bytes_);
  in.bytes = meta.header_size();
  for (const wire::TensorMeta& entry : meta.tensors()) {
    ASSIGN_OR_RETURN(const DType dtype, DTypeOf(entry));
    ASSIGN_OR_RETURN(
        const uint64_t bytes,
        TensorBytes(entry, dtype, max_bytes_ - in.bytes, max_bytes_));
    in.bytes += bytes;
    const size_t tensor = in.specs.size();
    in.specs.push_back({dtype,
                        Shape(Dims(entry.sizes().begin(), entry.sizes().end())),
                        entry.channels_last() ? MemoryFormat::kChannelsLast
                                              : MemoryFormat::kContiguous,
                        bytes, entry.gpu() && device_.is_cuda()});
    if (entry.channel() != 0) {
      RETURN_IF_ERROR(Import(in, entry, tensor, channels));
    } else if (entry.chunked() && bytes > 0) {
      in.chunked_tensors.push_back(tensor);
    } else {
      in.inline_tensors.push_back(tensor);
    }
  }
  if (!in.header_is_last_tensor) return absl::OkStatus();
  const Tensor& imported = in.message.tensors.back();
  if (in.specs.back().dtype != DType::kU8 || in.specs.back().pinned ||
      (imported.defined() && !imported.device().is_cpu())) {
    return absl::InvalidArgumentError("a header that is not of bytes");
  }
  return absl::OkStatus();
}

absl::Status Receiver::Import(Incoming& in, const wire::TensorMeta& entry,
                              size_t tensor, TensorChannels* channels) {
  if (channels == nullptr) {
    return absl::InvalidArgumentError("a tensor by a channel without any");
  }
  ASSIGN_OR_RETURN(
      Imported imported,
      channels->Import(entry.channel(), in.specs[tensor], entry.ticket()));
  in.imported_bytes += in.specs[tensor].bytes;
  in.message.tensors[tensor] = imported.tensor;
  if (!imported.given.valid()) return Settle(in, tensor);
  return Await(in, tensor, imported);
}

// A tensor that has not arrived yet is settled when it has.
absl::Status Receiver::Await(Incoming& in, size_t tensor,
                             const Imported& late) {
  Tensor& values = in.message.tensors[tensor];
  if (values.device().is_cuda() || !in.specs[tensor].pinned) {
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
  if (in.chunked_tensors.empty() || header.meta_bytes != 0) {
    return absl::InvalidArgumentError("a chunk that belongs to no message");
  }
  const size_t tensor = in.chunked_tensors[in.chunked];
  const uint64_t missing = in.specs[tensor].bytes - in.offset;
  if (header.payload_bytes == 0 || header.payload_bytes > missing) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", header.payload_bytes, " bytes where ",
                     missing, " are missing"));
  }
  if (in.offset == 0) RETURN_IF_ERROR(Allocate(in, tensor));
  RETURN_IF_ERROR(Append(in, tensor, header.payload_bytes, frames));
  in.offset += header.payload_bytes;
  if (header.payload_bytes < missing) return absl::OkStatus();
  RETURN_IF_ERROR(Settle(in, tensor));
  in.offset = 0;
  if (++in.chunked < in.chunked_tensors.size()) return absl::OkStatus();
  const absl::Status finished = Finish(in, batch);
  in = Incoming();
  return finished;
}

absl::Status Receiver::Allocate(Incoming& in, size_t tensor) {
  const TensorSpec& spec = in.specs[tensor];
  return CatchErrors([&] {
    in.message.tensors[tensor] = Tensor::Empty(
        spec.shape,
        {.dtype = spec.dtype, .format = spec.format, .pinned = spec.pinned});
  });
}

absl::Status Receiver::Append(Incoming& in, size_t tensor, size_t bytes,
                              FrameReader& frames) {
  if (bytes == 0) return absl::OkStatus();
  auto* elements = static_cast<char*>(in.message.tensors[tensor].raw_data());
  if (frames.Read(elements + in.offset, bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError("a frame ends early");
}

absl::Status Receiver::Settle(Incoming& in, size_t tensor) {
  Tensor& values = in.message.tensors[tensor];
  if (values.device().is_cuda()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckElements(
      values.dtype(),
      {static_cast<const std::byte*>(values.raw_data()), values.nbytes()}));
  if (!in.specs[tensor].pinned) return absl::OkStatus();
  return CatchErrors([&] { values = OnGpu(values, device_); });
}

absl::Status Receiver::Finish(Incoming& in, Batch& batch) {
  const bool small = in.chunked_tensors.empty();
  batch.small = batch.small || small;
  if (in.awaited.empty()) {
    if (in.header_is_last_tensor) RETURN_IF_ERROR(RestoreHeader(in.message));
    batch.bytes += in.bytes;
    batch.messages.push_back(std::move(in.message));
  } else {
    batch.late.push_back({.message = std::move(in.message),
                          .awaited = std::move(in.awaited),
                          .bytes = in.bytes,
                          .bytes_here = in.bytes - in.imported_bytes,
                          .small = small,
                          .header_is_last_tensor = in.header_is_last_tensor});
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
