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

// Limits how much each other worker may have waiting at this one, in calls and
// in answers not yet sent, so that no worker uses up all memory or all call
// slots. Thread-safe.
class CallQuota : public std::enable_shared_from_this<CallQuota> {
 public:
  CallQuota(size_t max_calls, size_t max_bytes, size_t max_replies)
      : max_calls_(max_calls),
        max_bytes_(max_bytes),
        max_replies_(max_replies) {}

 private:
  struct Load {
    size_t calls = 0;
    std::atomic<size_t> bytes{0};    // of arguments
    std::atomic<size_t> answers{0};  // bytes
    size_t replies = 0;
    // `replies` reached the limit and has not been 0 since.
    bool too_many = false;
  };
  using Loads = std::map<std::string, Load>;

 public:
  // The share of one call or reply, which it has until this is destroyed.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Returns ResourceExhausted if too many bytes of answers to this worker
    // have not been sent yet.
    absl::Status MayRun() const;
    // Records that the arguments are freed and an answer of `bytes` waits to be
    // sent.
    void Answer(size_t bytes);

   private:
    friend class CallQuota;
    Place(std::shared_ptr<CallQuota> quota, Loads::iterator of, bool call)
        : quota_(std::move(quota)), of_(of), call_(call) {}

    const std::shared_ptr<CallQuota> quota_;
    const Loads::iterator of_;
    const bool call_;
    size_t bytes_ = 0;   // of the call's arguments
    size_t answer_ = 0;  // bytes
  };
  using Ticket = std::unique_ptr<Place>;

  // Admits a call of `bytes`. Returns ResourceExhausted, which names the limit,
  // if too many calls of `peer` or too many bytes of them wait. A single call
  // may have any size.
  absl::StatusOr<Ticket> Take(const std::string& peer, size_t bytes);

  // Admits a message to `peer` that has no call's ticket: a refusal or an
  // acknowledgement. Returns null if the most such messages already wait to be
  // sent; `first` is then set to whether this is the first one refused since
  // none waited.
  Ticket TakeReply(const std::string& peer, bool& first);

 private:
  void Give(const Place& place);

  const size_t max_calls_;
  const size_t max_bytes_;
  const size_t max_replies_;
  Mutex mutex_;
  // Peers for which nothing waits have no entry.
  Loads loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
