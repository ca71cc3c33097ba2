// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/support/slice.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/pending_read.h"
#include "rpc/transport.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

namespace wire {
class TensorMeta;
}  // namespace wire

// An encoded message that is being sent. The slices that it hands out refer to
// the tensors' memory, pin it and keep this object alive. `sent` runs on
// `executor` exactly once. OK is reported only when the last slice is gone,
// and, if requested, on that thread. Confined to the holder of the link's lock,
// except for the release of slices.
class Outgoing {
 public:
  // Returns InvalidArgument for tensors that cannot be sent and
  // ResourceExhausted for a message above `max_bytes`; then the caller must
  // call `sent`. Tensors that are too large for the message frame are given to
  // `channels`, if it is not null and takes them. So is a header that large.
  static absl::StatusOr<std::shared_ptr<Outgoing>> Make(
      Message message, size_t max_bytes, Transport::Sent& sent,
      const std::shared_ptr<ThreadPool>& executor, bool success_inline = false,
      std::shared_ptr<TensorChannels> channels = nullptr);
  ~Outgoing();
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  // Whether Make gives parts of the message to channels, if there are such.
  static bool UsesChannels(const Message& message);
  // Whether parts of the message travel in chunks.
  bool chunked() const { return !parts_.empty(); }
  size_t bytes() const { return bytes_; }
  bool begun() const { return frame_taken_; }  // some of it was taken
  // The channels of the connection that it must use; null for any connection.
  const std::shared_ptr<TensorChannels>& channels() const { return channels_; }

  // Moves the next bytes to `out`, up to about `budget`. Subtracts from
  // `budget` these bytes and those that channels carry; a write is completed
  // even if the reader has no more room. Returns true when nothing is left to
  // take.
  static bool Take(const std::shared_ptr<Outgoing>& self, size_t& budget,
                   std::vector<grpc::Slice>& out);
  // All of a message that is not chunked, as bytes that live as long as this
  // object.
  static const std::string& TakeFrame(const std::shared_ptr<Outgoing>& self);

  // All that was taken has been written.
  void Written() { written_ = true; }
  // Whether channels still have to send some of it; they keep this object
  // alive.
  bool awaits_channels() const { return awaited_ > 0; }
  // Whether channels have dropped a tensor without sending it.
  bool lost() const { return lost_; }
  // Reports the failure now, even if gRPC still holds slices.
  void Fail(absl::Status why) { Report(std::move(why)); }

 private:
  Outgoing() = default;
  absl::Status Encode();
  bool Export(Tensor& tensor, wire::TensorMeta& entry);
  grpc::Slice ChunkOf(const std::shared_ptr<Outgoing>& self,
                      size_t bytes) const;
  static void FrameTaken(const std::shared_ptr<Outgoing>& self);
  void Report(absl::Status status);

  Message message_;  // without what was encoded or exported
  std::shared_ptr<TensorChannels> channels_;
  std::vector<TensorChannels::Exported> exported_;
  size_t exported_bytes_ = 0;
  std::string frame_;
  std::deque<PendingRead> parts_;  // the tensors that travel as chunks
  size_t part_ = 0;
  size_t offset_ = 0;  // in parts_[part_]
  bool frame_taken_ = false;
  size_t bytes_ = 0;
  std::atomic<bool> written_{false};
  std::atomic<int> awaited_{0};  // tensors that channels must send
  std::atomic<bool> lost_{false};
  std::atomic<bool> reported_{false};
  Transport::Sent sent_;
  std::weak_ptr<ThreadPool> executor_;
  bool success_inline_ = false;
};

}  // namespace baton::rpc
