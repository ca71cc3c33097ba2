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

absl::Status Receiver::ReadMessage(const FrameHeader& header, FrameReader& in,
                                   TensorChannels* channels, Batch& batch) {
  if (message_.has_value()) {
    return absl::InvalidArgumentError("a message amid the chunks of another");
  }
  std::string bytes(header.meta_bytes, '\0');
  wire::MessageMeta meta;
  if (!in.Read(bytes.data(), bytes.size()) || !meta.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("a message whose meta does not parse");
  }
  if (static_cast<size_t>(meta.tensors_size()) > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", meta.tensors_size(), " tensors"));
  }
  message_.emplace();
  message_->tensors.resize(static_cast<size_t>(meta.tensors_size()));
  std::vector<Part> inline_parts;
  RETURN_IF_ERROR(Plan(meta, channels, inline_parts));
  uint64_t inline_bytes = 0;
  for (const Part& part : inline_parts) inline_bytes += part.bytes;
  if (inline_bytes != header.payload_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message with ", header.payload_bytes,
                     " bytes of inline parts, not ", inline_bytes));
  }
  for (const Part& part : inline_parts) {
    if (part.tensor >= 0) RETURN_IF_ERROR(Allocate(part.tensor));
    RETURN_IF_ERROR(Append(part, part.bytes, in));
    RETURN_IF_ERROR(Settle(part.tensor));
  }
  if (parts_.empty()) Finish(batch);
  return absl::OkStatus();
}

absl::Status Receiver::Plan(const wire::MessageMeta& meta,
                            TensorChannels* channels,
                            std::vector<Part>& inline_parts) {
  specs_.clear();
  for_gpu_.clear();
  parts_.clear();
  awaited_.clear();
  imported_bytes_ = 0;
  part_ = 0;
  offset_ = 0;
  if (meta.header_size() > max_bytes_) return TooLarge(max_bytes_);
  uint64_t total = meta.header_size();
  const bool header_chunked = meta.header_chunked() && total > 0;
  (header_chunked ? parts_ : inline_parts).push_back({-1, total});
  for (int i = 0; i < meta.tensors_size(); ++i) {
    const wire::TensorMeta& entry = meta.tensors(i);
    ASSIGN_OR_RETURN(const DType dtype, DTypeOf(entry));
    ASSIGN_OR_RETURN(uint64_t size,
                     TensorBytes(entry, dtype, max_bytes_ - total, max_bytes_));
    total += size;
    for_gpu_.push_back(entry.gpu() && device_.is_cuda());
    specs_.push_back({dtype,
                      Shape(Dims(entry.sizes().begin(), entry.sizes().end())),
                      entry.channels_last() ? MemoryFormat::kChannelsLast
                                            : MemoryFormat::kContiguous,
                      size, for_gpu_.back()});
    if (entry.channel() != 0) {
      RETURN_IF_ERROR(Import(entry, i, channels));
    } else if (entry.chunked() && size > 0) {
      parts_.push_back({i, size});
    } else {
      inline_parts.push_back({i, size});
    }
  }
  message_bytes_ = total;
  return absl::OkStatus();
}

absl::Status Receiver::Import(const wire::TensorMeta& entry, int tensor,
                              TensorChannels* channels) {
  if (channels == nullptr) {
    return absl::InvalidArgumentError("a tensor by a channel without any");
  }
  const auto index = static_cast<size_t>(tensor);
  ASSIGN_OR_RETURN(
      Imported imported,
      channels->Import(entry.channel(), specs_[index], entry.ticket()));
  imported_bytes_ += specs_[index].bytes;
  message_->tensors[index] = imported.tensor;
  if (!imported.given.valid()) return Settle(tensor);
  return Await(tensor, imported);
}

// A tensor that has not arrived yet is settled when it has.
absl::Status Receiver::Await(int tensor, const Imported& late) {
  Tensor& values = message_->tensors[static_cast<size_t>(tensor)];
  if (values.device().is_cuda() || !for_gpu_[static_cast<size_t>(tensor)]) {
    awaited_.push_back(late.given);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CatchErrors([&] { values = MadeOnGpu(values, device_); }));
  awaited_.push_back(late.given.Then(
      [from = late.tensor, to = values] { MoveToGpu(from, to); }));
  return absl::OkStatus();
}

absl::Status Receiver::ReadChunk(const FrameHeader& header, FrameReader& in,
                                 Batch& batch) {
  if (!message_.has_value() || header.meta_bytes != 0) {
    return absl::InvalidArgumentError("a chunk that belongs to no message");
  }
  const Part part = parts_[part_];
  if (header.payload_bytes == 0 ||
      header.payload_bytes > part.bytes - offset_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", header.payload_bytes, " bytes where ",
                     part.bytes - offset_, " are missing"));
  }
  if (offset_ == 0 && part.tensor >= 0) RETURN_IF_ERROR(Allocate(part.tensor));
  RETURN_IF_ERROR(Append(part, header.payload_bytes, in));
  offset_ += header.payload_bytes;
  if (offset_ < part.bytes) return absl::OkStatus();
  RETURN_IF_ERROR(Settle(part.tensor));
  offset_ = 0;
  if (++part_ == parts_.size()) Finish(batch);
  return absl::OkStatus();
}

absl::Status Receiver::Allocate(int tensor) {
  const auto index = static_cast<size_t>(tensor);
  const TensorSpec& spec = specs_[index];
  return CatchErrors([&] {
    message_->tensors[index] =
        Tensor::Empty(spec.shape, {.dtype = spec.dtype,
                                   .format = spec.format,
                                   .pinned = for_gpu_[index]});
  });
}

absl::Status Receiver::Append(const Part& part, size_t bytes, FrameReader& in) {
  if (bytes == 0) return absl::OkStatus();
  char* to;
  if (part.tensor < 0) {
    // Grows as bytes arrive, so that an announced size allocates nothing.
    const size_t old = message_->header.size();
    message_->header.resize(old + bytes);
    to = message_->header.data() + old;
  } else {
    const Tensor& tensor = message_->tensors[static_cast<size_t>(part.tensor)];
    to = static_cast<char*>(tensor.raw_data()) + offset_;
  }
  if (!in.Read(to, bytes)) {
    return absl::InvalidArgumentError("a frame ends early");
  }
  return absl::OkStatus();
}

absl::Status Receiver::Settle(int tensor) {
  if (tensor < 0) return absl::OkStatus();
  const auto index = static_cast<size_t>(tensor);
  Tensor& values = message_->tensors[index];
  if (values.device().is_cuda()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckValues(tensor));
  if (!for_gpu_[index]) return absl::OkStatus();
  return CatchErrors([&] { values = OnGpu(values, device_); });
}

// Reading a bool from any byte but 0 and 1 would be undefined behaviour.
absl::Status Receiver::CheckValues(int tensor) const {
  const Tensor& values = message_->tensors[static_cast<size_t>(tensor)];
  if (values.dtype() != DType::kBool) return absl::OkStatus();
  const auto* bytes = static_cast<const uint8_t*>(values.raw_data());
  if (std::any_of(bytes, bytes + values.nbytes(),
                  [](uint8_t byte) { return byte > 1; })) {
    return absl::InvalidArgumentError(
        "a bool tensor with bytes other than 0 and 1");
  }
  return absl::OkStatus();
}

void Receiver::Finish(Batch& batch) {
  if (awaited_.empty()) {
    batch.bytes += message_bytes_;
    batch.messages.push_back(*std::move(message_));
  } else {
    batch.late.push_back({.message = *std::move(message_),
                          .awaited = std::exchange(awaited_, {}),
                          .bytes = message_bytes_,
                          .bytes_here = message_bytes_ - imported_bytes_,
                          .small = parts_.empty()});
  }
  message_.reset();
}

}  // namespace baton::rpc
