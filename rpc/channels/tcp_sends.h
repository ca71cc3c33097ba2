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
#include "rpc/channels/tcp_stream.h"

namespace baton::rpc {

// Tensors of the CPU for one peer, and the bytes that bring them there by a
// socket: each is its lease and its size (u64, little-endian), then its
// elements, which are read where the tensor has them until they are written.
// Thread-safe.
class TcpSends {
 public:
  // Nothing for tensors of a GPU, for bools, whose bytes may be 0 or 1 alone,
  // and when too much waits already. One with gaps is copied.
  std::optional<Ticket> Export(const Tensor& tensor);
  void Withdraw(uint64_t lease);
  // It goes, behind those before. As Channel::Send.
  Future<void> Send(uint64_t lease);

  // What there was to write, or could be: a step of one thread, which calls
  // this again and again.
  struct Wrote {
    bool full = false;  // the socket takes no more now
    bool all = false;   // nothing is left
    // To be set OK: the last byte of a tensor is with the kernel.
    std::optional<Promise<void>> left = {};
  };
  // Writes at most 4 MB. Unavailable when the stream is broken, Cancelled after
  // Lose.
  absl::StatusOr<Wrote> Write(TcpStream& stream);

  // When it returns no tensor is read any more; what had not left fails.
  void Lose();

  SentTensors counts() const;

 private:
  struct Item {
    std::unique_ptr<const PendingRead> read = nullptr;
    Promise<void> left = Promise<void>();
    uint64_t bytes() const { return read->original().nbytes(); }
  };
  struct Head {
    uint64_t lease;
    uint64_t bytes;
  };
  // Offers the next bytes of the tensor, `offered` of them, and returns how
  // many the stream took.
  absl::StatusOr<size_t> WriteSome(TcpStream& stream, size_t& offered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  // The next tensor, if it is not one already. False when there is none.
  absl::StatusOr<bool> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  std::optional<Promise<void>> Advance(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);

  // Held while the stream is written; taken before the other one.
  Mutex writing_;
  std::optional<Item> item_ ABSL_GUARDED_BY(writing_);
  Head head_ ABSL_GUARDED_BY(writing_){};
  size_t written_ ABSL_GUARDED_BY(writing_) = 0;  // of head and elements

  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Item> out_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<uint64_t, Item>> queue_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
