// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/stream.h"

namespace baton {

// A read that no stream of this process makes, such as another process's, so
// that no stream can wait for it. Thread-safe.
class OutsideRead {
 public:
  // Each Await that must wait calls `wanted` first, if there is one.
  explicit OutsideRead(std::function<void()> wanted = nullptr)
      : wanted_(std::move(wanted)) {}

  void End();
  bool ended() const;
  // Throws Error(DeadlineExceeded) if it has not ended after a minute.
  void Await() const;

 private:
  const std::function<void()> wanted_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The streams that use a storage. Read and Write make a stream wait for work of
// others that must come first: a reader waits for the last writer, a writer for
// all users. Waits are inserted once, and none while everything is on one
// stream. If another process still reads, a writer waits on its own thread,
// because a GPU must not wait for something that may never end. Thread-safe.
class StreamUse {
 public:
  // `home` is the stream on which the storage was allocated; its earlier work
  // comes first.
  explicit StreamUse(const Stream& home)
      : home_(home), writer_{home, home.position()} {}

  const Stream& home() const { return home_; }
  void Read(const Stream& stream);
  void Write(const Stream& stream);
  // The caller must keep the storage alive until `read` has ended.
  void ReadOutside(std::shared_ptr<const OutsideRead> read);
  // Extends the last Read or Write of `stream` by the work that it has been
  // given since.
  void Extend(const Stream& stream);
  // The streams, other than home, whose work must end before the memory is
  // reused.
  std::vector<Stream> Guests() const;

 private:
  // A stream, and the end of its work on the storage.
  struct User {
    Stream stream;
    Stream::Position position;
  };
  void AwaitOutside();
  User* FindReaderLocked(const Stream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Stream home_;
  mutable Mutex mutex_;
  User writer_ ABSL_GUARDED_BY(mutex_);
  std::vector<User> readers_ ABSL_GUARDED_BY(mutex_);  // since the last write
  std::vector<std::shared_ptr<const OutsideRead>> outside_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
