// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/outgoing.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/channel.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/packed.h"
#include "rpc/wire.pb.h"

namespace baton::rpc {
namespace {

using Self = std::shared_ptr<Outgoing>;

// Small ones of the CPU travel in the message frame.
bool UsesChannel(const Tensor& tensor) {
  return tensor.nbytes() > kInlineTensorBytes || !tensor.device().is_cpu();
}

Tensor TensorOf(std::string header) {
  const auto bytes = std::make_shared<std::string>(std::move(header));
  auto storage =
      Storage::Wrap(bytes->data(), bytes->size(), Device::Cpu(), [bytes] {});
  return DenseView(
      std::move(storage),
      {.dtype = DType::kU8, .shape = {static_cast<int64_t>(bytes->size())}});
}

// What a slice keeps alive. The pin, if it is of a tensor, is destroyed first.
struct Kept {
  Self self;
  std::shared_ptr<const Tensor> pin;
};
grpc::Slice SliceOf(const char* data, size_t bytes, Kept kept) {
  return grpc::Slice(
      const_cast<char*>(data), bytes,
      [](void* owner) { delete static_cast<Kept*>(owner); },
      new Kept(std::move(kept)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Outgoing>> Outgoing::Make(
    Message message, size_t max_bytes, Transport::Sent& sent,
    const std::shared_ptr<ThreadPool>& executor, bool success_inline,
    std::shared_ptr<TensorChannels> channels) {
  RETURN_IF_ERROR(CheckTensors(message));
  std::shared_ptr<Outgoing> self(new Outgoing());
  self->message_ = std::move(message);
  self->reported_ = true;  // until it takes over `sent`
  self->bytes_ = BytesOf(self->message_);
  if (self->bytes_ > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message of ", self->bytes_, " bytes; at most ",
                     max_bytes, " are allowed (--max_message_bytes)"));
  }
  self->channels_ = std::move(channels);
  RETURN_IF_ERROR(CatchErrors([&] { return self->Encode(); }));
  if (self->exported_.empty()) self->channels_ = nullptr;
  self->sent_ = std::move(sent);
  self->executor_ = executor;
  self->success_inline_ = success_inline;
  self->reported_ = false;
  return self;
}

bool Outgoing::UsesChannels(const Message& message) {
  if (message.header.size() > kInlineTotalBytes) return true;
  return std::any_of(message.tensors.begin(), message.tensors.end(),
                     [](const Tensor& tensor) {
                       return tensor.defined() && UsesChannel(tensor);
                     });
}

absl::Status Outgoing::Encode() {
  if (message_.tensors.size() > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", message_.tensors.size(),
                     " tensors; at most ", kMaxTensors, " fit"));
  }
  wire::MessageMeta meta;
  size_t inline_bytes = 0;
  std::vector<std::string_view> inline_parts;
  const auto is_inline = [&](const void* data, size_t bytes, size_t limit) {
    const bool fits =
        bytes <= limit && bytes <= kInlineTotalBytes - inline_bytes;
    if (!fits) return false;
    inline_bytes += bytes;
    inline_parts.emplace_back(static_cast<const char*>(data), bytes);
    return true;
  };
  std::string& header = message_.header;
  if (is_inline(header.data(), header.size(), kInlineTotalBytes)) {
    meta.set_header_size(header.size());
  } else {
    meta.set_header_is_last_tensor(true);
    message_.tensors.push_back(TensorOf(std::move(header)));
  }
  for (Tensor& tensor : message_.tensors) {
    wire::TensorMeta& entry = *meta.add_tensors();
    entry.set_dtype(static_cast<uint32_t>(tensor.dtype()));
    for (int64_t size : tensor.shape()) entry.add_sizes(size);
    entry.set_channels_last(tensor.SuggestFormat() ==
                            MemoryFormat::kChannelsLast);
    entry.set_gpu(tensor.device().is_cuda());
    if (Export(tensor, entry)) continue;
    if (tensor.device().is_cuda()) {
      tensor = OnHost(tensor);
      if (Export(tensor, entry)) continue;
    }
    tensor = Packed(tensor);
    entry.set_chunked(
        !is_inline(tensor.raw_data(), tensor.nbytes(), kInlineTensorBytes));
    if (entry.chunked()) parts_.emplace_back(tensor);
  }
  const size_t meta_bytes = meta.ByteSizeLong();
  if (meta_bytes > kMaxMetaBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", message_.tensors.size(),
                     " tensors; their shapes alone are above 1 MB"));
  }
  frame_.reserve(kFrameHeaderBytes + meta_bytes + inline_bytes);
  AppendFrameHeader(
      {FrameKind::kMessage, static_cast<uint32_t>(meta_bytes), inline_bytes},
      frame_);
  meta.AppendToString(&frame_);
  for (const std::string_view part : inline_parts) frame_.append(part);
  message_.tensors.clear();
  return absl::OkStatus();
}

// Drops the tensor if a channel has taken it.
bool Outgoing::Export(Tensor& tensor, wire::TensorMeta& entry) {
  const size_t bytes = tensor.nbytes();
  if (channels_ == nullptr || !UsesChannel(tensor)) return false;
  auto exported = channels_->Export(tensor);
  if (!exported.has_value()) return false;
  entry.set_channel(exported->channel);
  entry.set_ticket(exported->ticket.ticket);
  exported_.push_back(*std::move(exported));
  exported_bytes_ += bytes;
  [[maybe_unused]] const Tensor taken = std::move(tensor);
  return true;
}

bool Outgoing::Take(const std::shared_ptr<Outgoing>& self, size_t& budget,
                    std::vector<grpc::Slice>& out) {
  const auto spend = [&budget](size_t bytes) {
    budget -= std::min(budget, bytes);
  };
  if (!self->frame_taken_) {
    FrameTaken(self);
    out.push_back(
        SliceOf(self->frame_.data(), self->frame_.size(), {self, nullptr}));
    spend(self->frame_.size() + self->exported_bytes_);
  }
  while (self->part_ < self->parts_.size() && budget > 0) {
    const size_t whole = self->parts_[self->part_].original().nbytes();
    const size_t bytes = std::min(budget, whole - self->offset_);
    std::string header;
    AppendFrameHeader({FrameKind::kChunk, 0, bytes}, header);
    out.emplace_back(header);
    out.push_back(self->ChunkOf(self, bytes));
    spend(bytes);
    self->offset_ += bytes;
    if (self->offset_ == whole) {
      ++self->part_;
      self->offset_ = 0;
    }
  }
  return self->part_ == self->parts_.size();
}

// Returns the next `bytes` of the present part.
grpc::Slice Outgoing::ChunkOf(const std::shared_ptr<Outgoing>& self,
                              size_t bytes) const {
  auto pin = parts_[part_].Pin();
  const char* data = static_cast<const char*>(pin->raw_data()) + offset_;
  return SliceOf(data, bytes, {self, std::move(pin)});
}

const std::string& Outgoing::TakeFrame(const std::shared_ptr<Outgoing>& self) {
  FrameTaken(self);
  return self->frame_;
}

void Outgoing::FrameTaken(const std::shared_ptr<Outgoing>& self) {
  self->frame_taken_ = true;
  for (const auto& exported : self->exported_) {
    const Future<void> left = self->channels_->Send(exported);
    if (!left.valid()) continue;
    ++self->awaited_;
    left.OnReady([self](const absl::Status& status) {
      if (!status.ok()) self->lost_ = true;
      --self->awaited_;
    });
  }
}

Outgoing::~Outgoing() {
  parts_.clear();  // first: then whoever is told may write without a copy
  // The peer has not been told of these tickets.
  if (!frame_taken_) {
    for (const auto& exported : exported_) channels_->Withdraw(exported);
  }
  Report(written_ && !lost_ ? absl::OkStatus()
                            : absl::UnavailableError("the connection broke"));
}

void Outgoing::Report(absl::Status status) {
  if (reported_.exchange(true) || sent_ == nullptr) return;
  std::shared_ptr<ThreadPool> executor = executor_.lock();
  if (executor == nullptr || (status.ok() && success_inline_)) {
    sent_(std::move(status));
    return;
  }
  executor->Post([sent = std::move(sent_), status]() mutable { sent(status); });
}

}  // namespace baton::rpc
