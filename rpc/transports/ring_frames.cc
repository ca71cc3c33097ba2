// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/ring_frames.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);

}  // namespace

absl::StatusOr<std::string_view> RingFrames::Next() {
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  if (left.size() < kLengthBytes) return std::string_view();
  uint32_t length;
  std::memcpy(&length, left.data(), kLengthBytes);
  if (length < kFrameHeaderBytes || length > kMaxGrpcMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", length, " bytes in a ring"));
  }
  if (left.size() - kLengthBytes < length) return std::string_view();
  taken_ += kLengthBytes + length;
  return left.substr(kLengthBytes, length);
}

void RingFrames::DropTaken() {
  bytes_.erase(0, taken_);
  taken_ = 0;
}

absl::Status RingReceiver::Read(Device device, size_t most,
                                Receiver::Batch& batch) {
  if (!unread_.exchange(false)) {
    frames_.DropTaken();
    RETURN_IF_ERROR(end_.ring->Read(frames_.bytes()));
    if (end_.ring->WriterWaits()) end_.wakeup->Wake();
  }
  while (!unread_) {
    ASSIGN_OR_RETURN(const std::string_view frame, frames_.Next());
    if (frame.empty()) break;
    RETURN_IF_ERROR(
        receiver_.Consume(FrameReader(frame), channels_.get(), batch, device));
    unread_ = batch.bytes >= most;
  }
  return absl::OkStatus();
}

bool RingSender::Ready() {
  if (!waits_) return false;
  const auto room = end_.ring->Room();
  return !room.ok() || *room > 0;
}

absl::Status RingSender::Write(std::string_view bytes) {
  if (rest_.empty()) {
    ASSIGN_OR_RETURN(const size_t written, end_.ring->Write(bytes));
    unpublished_ = unpublished_ || written > 0;
    bytes.remove_prefix(written);
  }
  rest_.append(bytes);
  return absl::OkStatus();
}

absl::Status RingSender::Add(std::string_view frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  RETURN_IF_ERROR(
      Write({reinterpret_cast<const char*>(&length), kLengthBytes}));
  return Write(frame);
}

absl::StatusOr<bool> RingSender::Flush() {
  for (bool asked = false; !rest_.empty();) {
    ASSIGN_OR_RETURN(const size_t written, end_.ring->Write(rest_));
    rest_.erase(0, written);
    unpublished_ = unpublished_ || written > 0;
    if (written > 0) {
      asked = false;
      continue;
    }
    if (asked) return false;
    // The reader only reads what has been published.
    Publish();
    waits_ = true;  // first: the answer may come at once
    end_.ring->AwaitRoom();
    asked = true;
  }
  waits_ = false;
  return true;
}

void RingSender::Publish() {
  if (!std::exchange(unpublished_, false)) return;
  end_.ring->Publish();
  end_.wakeup->Wake();
}

}  // namespace baton::rpc
