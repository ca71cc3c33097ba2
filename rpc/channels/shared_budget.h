// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"

namespace baton::rpc {

// The memory that this process may use: the machine's, or less if one of its
// cgroups has a limit (memory.max, or memory.limit_in_bytes of version 1); and
// how much of it is free or used only for cached files.
struct MemoryRoom {
  uint64_t limit = 0;
  uint64_t free = 0;
};
// `root` is where the file systems of the kernel are mounted.
MemoryRoom FindMemoryRoom(const std::string& root = "");

// Limits the shared memory that this process makes, or maps, for all workers
// together to an eighth of what it may use, or less if requested. Thread-safe.
class SharedBudget : public std::enable_shared_from_this<SharedBudget> {
 public:
  using Room = std::function<MemoryRoom()>;
  explicit SharedBudget(Room room) : room_(std::move(room)) {}
  // The budgets of this process: for what it makes, which must fit twice into
  // free memory, and for what it maps, which others have made.
  static const std::shared_ptr<SharedBudget>& OfMade();
  static const std::shared_ptr<SharedBudget>& OfMapped();

  // A part of the budget, which is returned when this object is dropped.
  class Part {
   public:
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    uint64_t bytes() const { return bytes_; }

   private:
    friend class SharedBudget;
    Part(std::shared_ptr<SharedBudget> budget, uint64_t bytes)
        : budget_(std::move(budget)), bytes_(bytes) {}
    const std::shared_ptr<SharedBudget> budget_;
    const uint64_t bytes_;
  };
  // Takes from `least` to `most` bytes, in whole pages, so that all parts
  // together have at most `limit`. Returns null if there is not so much; then
  // those who joined are asked to return what they do not use.
  std::unique_ptr<Part> Take(uint64_t least, uint64_t most, uint64_t limit);
  uint64_t taken() const;

  // `ask` is called on any thread and must not wait. Join returns the argument
  // of Leave.
  using Ask = std::function<void()>;
  uint64_t Join(Ask ask);
  void Leave(uint64_t member);

 private:
  const Room room_;
  mutable Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_member_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Ask> members_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
