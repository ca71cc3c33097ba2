// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::rpc::internal {

// Limits how much each other worker may have waiting at this one, in calls and
// in answers not yet sent, so that no worker uses up all memory or all call
// slots. Thread-compatible; tickets may be used and destroyed on any thread.
class CallQuota {
 public:
  CallQuota(size_t max_calls, size_t max_bytes, size_t max_replies)
      : max_calls_(max_calls),
        max_bytes_(max_bytes),
        max_replies_(max_replies) {}

 private:
  // Grows through the quota only, and shrinks on any thread.
  struct Load {
    const std::string peer;
    const size_t max_bytes;
    std::atomic<size_t> calls{0};
    std::atomic<size_t> bytes{0};    // of arguments
    std::atomic<size_t> answers{0};  // bytes
    std::atomic<size_t> replies{0};
    // `replies` reached the limit and has not been 0 since.
    bool too_many = false;
  };
  using LoadPtr = std::shared_ptr<Load>;

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
    Place(LoadPtr of, bool call, size_t bytes)
        : of_(std::move(of)), call_(call), bytes_(bytes) {}

    const LoadPtr of_;
    const bool call_;
    size_t bytes_;       // of the call's arguments
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

  // What `peer` has waiting does not count any more.
  void Forget(const std::string& peer) { loads_.erase(peer); }

 private:
  const LoadPtr& LoadOf(const std::string& peer);

  const size_t max_calls_;
  const size_t max_bytes_;
  const size_t max_replies_;
  std::unordered_map<std::string, LoadPtr> loads_;
};

}  // namespace baton::rpc::internal
