// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/pending_read.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {

// What each tensor begins with on a socket, in little-endian.
struct TcpHead {
  uint64_t lease;
  uint64_t bytes;  // of the elements, which follow
};

// The CPU tensors for one peer, and the bytes that carry them through a socket.
// Elements are read from the tensor until they are written. Thread-safe.
class TcpSends {
 public:
  // Returns nothing for GPU tensors and if too much is waiting already. A
  // tensor with gaps is copied.
  std::optional<Ticket> Export(const Tensor& tensor);
  void Withdraw(uint64_t lease);
  // Sends the tensor after the earlier ones; see Channel::Send.
  Future<void> Send(uint64_t lease);

  // The result of one step; one thread calls Write again and again.
  struct Wrote {
    bool full = false;  // the socket takes no more now
    bool all = false;   // nothing is left
    // To be set OK: the kernel has the last byte of a tensor.
    std::optional<Promise<void>> left = {};
  };
  // Writes at most 4 MB. Returns Unavailable if the stream is broken, Cancelled
  // after Lose.
  absl::StatusOr<Wrote> Write(TcpStream& stream);

  // After this no tensor is read any more, and all that had not left fail.
  void Lose();

  SentTensors counts() const;

 private:
  struct Item {
    std::unique_ptr<const PendingRead> read = nullptr;
    Promise<void> left = Promise<void>();
    uint64_t bytes() const { return read->original().nbytes(); }
  };
  // Offers the next bytes of the tensor, `offered` of them, and returns how
  // many the stream took.
  absl::StatusOr<size_t> WriteSome(TcpStream& stream, size_t& offered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  // Takes the next tensor, unless one is under way. Returns false if there is
  // none.
  absl::StatusOr<bool> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  std::optional<Promise<void>> Advance(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Held while the stream is written; acquired before `mutex_`.
  Mutex writing_;
  std::optional<Item> item_ ABSL_GUARDED_BY(writing_);
  TcpHead head_ ABSL_GUARDED_BY(writing_){};
  size_t written_ ABSL_GUARDED_BY(writing_) =
      0;  // of the head and the elements

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Item> out_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<uint64_t, Item>> queue_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
};

// The tensors that one peer has promised, and the bytes of them that arrive by
// a socket, which are read directly into the tensors. Bytes of a tensor that
// was not promised yet wait in the socket. Trusts nothing that it was told or
// that it reads. Thread-safe.
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
  TcpHead head_ ABSL_GUARDED_BY(reading_){};
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
