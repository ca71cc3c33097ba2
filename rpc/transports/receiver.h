// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/transport.h"
#include "rpc/transports/deliveries.h"
#include "rpc/transports/framing.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

namespace wire {
class MessageMeta;
class TensorMeta;
}  // namespace wire

// Builds messages from the frames of one stream and copies the elements of
// tensors directly to their final place. Whole messages may come between the
// chunks of another. Trusts nothing that it reads. Confined to the reads of its
// stream, which happen one at a time.
class Receiver {
 public:
  explicit Receiver(size_t max_message_bytes) : max_bytes_(max_message_bytes) {}

  // A frame that is no part of a message: its kind and meta bytes.
  struct Control {
    FrameKind kind;
    std::string meta;
  };
  struct Batch {
    std::vector<Message> messages;
    std::vector<Control> controls;
    size_t bytes = 0;  // of the messages
    std::vector<PendingMessage> late;
    bool small = false;  // any of the messages came without chunks

    bool Has(FrameKind kind) const;  // among the controls
    bool has_messages() const { return !messages.empty() || !late.empty(); }
  };
  // InvalidArgument or ResourceExhausted says what is wrong with the bytes; the
  // stream is unusable after that. Tensors with tickets are imported from
  // `channels`; if it is null, such tensors are invalid. GPU tensors are moved
  // to `device`.
  absl::Status Consume(const grpc::ByteBuffer& buffer, TensorChannels* channels,
                       Batch& batch, Device device = Device::Cpu());
  absl::Status Consume(FrameReader in, TensorChannels* channels, Batch& batch,
                       Device device = Device::Cpu());
  // The same for an unauthenticated peer, for which no state is kept: frames of
  // messages are refused.
  absl::Status ConsumeControls(const grpc::ByteBuffer& buffer, Batch& batch);

 private:
  // A message that is being read.
  struct Incoming {
    Message message;
    bool header_is_last_tensor = false;
    uint64_t bytes = 0;
    std::vector<Future<void>> awaited;
    uint64_t imported_bytes = 0;  // by channels
    std::vector<TensorSpec> specs;
    // Tensors whose elements are in the frame, and those in chunks.
    std::vector<size_t> inline_tensors, chunked_tensors;
    size_t chunked = 0;   // index into chunked_tensors
    uint64_t offset = 0;  // in that tensor
  };

  absl::Status ReadControl(const FrameHeader& header, FrameReader& in,
                           Batch& batch);
  // Checks the tensors and imports those that travel by channels.
  absl::Status Plan(Incoming& in, const wire::MessageMeta& meta,
                    TensorChannels* channels);
  absl::Status Import(Incoming& in, const wire::TensorMeta& entry,
                      size_t tensor, TensorChannels* channels);
  absl::Status ReadMessage(const FrameHeader& header, FrameReader& frames,
                           TensorChannels* channels, Batch& batch);
  absl::Status Await(Incoming& in, size_t tensor, const Imported& late);
  absl::Status ReadChunk(const FrameHeader& header, FrameReader& frames,
                         Batch& batch);
  static absl::Status Allocate(Incoming& in, size_t tensor);
  static absl::Status Append(Incoming& in, size_t tensor, size_t bytes,
                             FrameReader& frames);
  // Called when all elements of the tensor have arrived.
  absl::Status Settle(Incoming& in, size_t tensor);
  static absl::Status Finish(Incoming& in, Batch& batch);

  const size_t max_bytes_;
  Device device_;
  Incoming large_;  // whose chunks are coming, if it has any
};

}  // namespace baton::rpc
