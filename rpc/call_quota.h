// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace baton::rpc::internal {

// How much each other worker may have waiting at this one, calls as well as
// answers that have not left, so that none takes all memory or all places.
// Thread-safe.
class CallQuota : public std::enable_shared_from_this<CallQuota> {
 public:
  CallQuota(size_t max_calls, size_t max_bytes, size_t max_replies)
      : max_calls_(max_calls),
        max_bytes_(max_bytes),
        max_replies_(max_replies) {}

 private:
  struct Load {
    size_t calls = 0;
    size_t bytes = 0;                // of arguments
    std::atomic<size_t> answers{0};  // bytes
    size_t replies = 0;
    bool too_many = false;  // replies, since there were none
  };
  using Loads = std::map<std::string, Load>;

 public:
  // What one call, or reply, takes up until this is dropped.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // ResourceExhausted where so many bytes of answers for this worker have
    // not left that no more are to be made.
    absl::Status MayRun() const;
    // The arguments are gone, and an answer of `bytes` waits to be sent.
    void Answer(size_t bytes);

   private:
    friend class CallQuota;
    Place(std::shared_ptr<CallQuota> quota, Loads::iterator of, bool call)
        : quota_(std::move(quota)), of_(of), call_(call) {}

    const std::shared_ptr<CallQuota> quota_;
    const Loads::iterator of_;
    const bool call_;
    size_t bytes_ = 0;   // of its arguments
    size_t answer_ = 0;  // bytes
  };
  using Ticket = std::unique_ptr<Place>;

  // For a call of `bytes`. ResourceExhausted, which names the limit, when too
  // many calls of `peer`, or too large ones, wait. One alone may be of any
  // size.
  absl::StatusOr<Ticket> Take(const std::string& peer, size_t bytes);

  // For a message that answers `peer` without a call's ticket: a refusal, an
  // acknowledgement. Null when the most of them have not left; `first` where
  // there was none before.
  Ticket TakeReply(const std::string& peer, bool& first);

 private:
  void Give(const Place& place);

  const size_t max_calls_;
  const size_t max_bytes_;
  const size_t max_replies_;
  Mutex mutex_;
  // One with nothing is erased.
  Loads loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
