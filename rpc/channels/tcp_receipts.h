// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/tcp_stream.h"

namespace baton::rpc {

// The tensors that one peer has promised, and the bytes of them that arrive by
// a socket (rpc/channels/tcp_sends.h), which are read directly into the
// tensors. Bytes of a tensor that was not promised yet wait in the socket.
// Trusts nothing that it was told or that it reads. Thread-safe.
class TcpReceipts {
 public:
  // Returns the tensor, whose elements come later. InvalidArgument for a ticket
  // that makes no sense, or if more is promised than an honest sender has out.
  absl::StatusOr<Imported> Import(const TensorSpec& spec, uint64_t lease,
                                  uint64_t bytes);

  // The result of one step; one thread calls ReadFrom again and again.
  struct Read {
    bool empty = false;    // the socket has nothing more now
    bool unasked = false;  // what comes next was not promised yet
    // To be set OK: the last byte of a tensor has arrived.
    std::optional<Promise<void>> came = {};
  };
  // Reads at most 4 MB. InvalidArgument for bytes that make no sense,
  // Unavailable when the socket is broken or ends, Cancelled after Lose.
  absl::StatusOr<Read> ReadFrom(TcpStream& stream);

  // After this no tensor is written any more, and all missing ones fail.
  void Lose();

  ReceivedTensors counts() const;

 private:
  struct Receipt {
    Tensor tensor = {};
    Promise<void> came = Promise<void>();
    uint64_t bytes = 0;
  };
  struct Head {
    uint64_t lease;
    uint64_t bytes;
  };
  // Finds the tensor that the head names, once the head is complete. Returns
  // false if that tensor was not promised yet.
  absl::StatusOr<bool> Find() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  bool head_is_whole() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_) {
    return head_bytes_ == sizeof(head_);
  }
  std::optional<Promise<void>> Advance(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);

  // Held while the stream is read; acquired before `mutex_`.
  Mutex reading_;
  Head head_ ABSL_GUARDED_BY(reading_){};
  size_t head_bytes_ ABSL_GUARDED_BY(reading_) =
      0;  // the bytes of it that have arrived
  std::optional<Receipt> receipt_ ABSL_GUARDED_BY(reading_);  // of the head
  size_t read_ ABSL_GUARDED_BY(reading_) = 0;                 // of its elements

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, Receipt> receipts_ ABSL_GUARDED_BY(mutex_);
  uint64_t awaited_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
