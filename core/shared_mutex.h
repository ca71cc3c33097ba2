// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"

namespace baton {

// A mutex that one writer or any number of readers hold. A reader waits for at
// most one writer. A writer waits for the present readers and, if it waits
// behind another writer, for the readers that waited beside it: neither kind
// can starve the other. Built on Mutex, so that ThreadSanitizer understands it.
// Not recursive: a reader that locks it again may wait for a writer that waits
// for this reader.
class ABSL_LOCKABLE SharedMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    ++writers_waiting_;
    while (writing_ || readers_ > 0) changed_.Wait(mutex_);
    --writers_waiting_;
    writing_ = true;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    writing_ = false;
    // Admit the waiting readers before the next writer.
    ++admissions_;
    readers_ += readers_waiting_;
    readers_waiting_ = 0;
    changed_.NotifyAll();
  }
  void LockShared() ABSL_SHARED_LOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    if (!writing_ && writers_waiting_ == 0) {
      ++readers_;
      return;
    }
    ++readers_waiting_;
    const uint64_t before = admissions_;
    while (admissions_ == before) changed_.Wait(mutex_);
  }
  void UnlockShared() ABSL_UNLOCK_FUNCTION() {
    const MutexLock lock(mutex_);
    if (--readers_ == 0) changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int writers_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int readers_ ABSL_GUARDED_BY(mutex_) = 0;
  int readers_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of times that waiting readers were admitted.
  uint64_t admissions_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ABSL_SCOPED_LOCKABLE WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~WriterLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() ABSL_UNLOCK_FUNCTION() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace baton
